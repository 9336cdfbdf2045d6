internal import Foundation
internal import Glibc
internal import Logging
internal import NIOHTTP1
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

/// The routes of the queue, for users with different access.
private struct Users {
    let alice = PeerCredentials(pid: 1, uid: 60_001, gid: 60_010)
    let bob = PeerCredentials(pid: 1, uid: 60_002, gid: 60_010)
    let reader = PeerCredentials(pid: 1, uid: 60_003, gid: 60_011)
    let root = PeerCredentials(pid: 1, uid: 0, gid: 0)

    let directory: ScratchDirectory
    let queue: OfflineQueue
    let access: AccessRules
    let router: ControlRouter

    init(quota: UserQuota = UserQuota()) async throws {
        directory = try ScratchDirectory()
        queue = try await directory.openQueue()
        var policy = AccessPolicy(owner: 60_000)
        policy.submitGroups = [SystemGroup(name: "submitters", id: 60_010)]
        policy.readGroups = [SystemGroup(name: "readers", id: 60_011)]
        access = AccessRules(policy: policy, quota: quota)
        let routes = QueueRoutes(queue: queue, isRunning: true, access: access).routes
        router = ControlRouter(routes, access: access)
    }

    func respond(
        _ peer: PeerCredentials,
        _ method: HTTPMethod,
        _ target: String,
        _ body: String = ""
    ) async throws -> RouteResponse {
        let request = ControlRequest(
            method: method,
            target: try #require(RequestTarget(target)),
            body: Array(body.utf8),
            peer: peer
        )
        let response = await router.respond(to: request)
        let object = try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any]
        return RouteResponse(status: response.status.code, members: try #require(object))
    }

    /// Submits a request and returns the response.
    @discardableResult
    func submit(_ peer: PeerCredentials, _ id: String, _ members: String = "") async throws -> RouteResponse {
        try await respond(
            peer,
            .POST,
            "/v1/requests",
            #"{"url":"http://api.example/secret","method":"POST","headers":[["X-A","b"]],"body":"content","#
                + #""queue":"always","id":"\#(id)"\#(members)}"#
        )
    }

    /// The requests of a list, by their ids.
    func list(_ peer: PeerCredentials, _ query: String = "") async throws -> [String: [String: Any]] {
        let listed = try await respond(peer, .GET, "/v1/requests" + query).members["requests"]
        let requests = try #require(listed as? [[String: Any]])
        return Dictionary(uniqueKeysWithValues: requests.map { ($0["id"] as? String ?? "", $0) })
    }

    /// The codes of a response to an edit of many requests; `done` for those that were edited.
    func codes(_ response: RouteResponse) throws -> [String] {
        let results = try #require(response.members["results"] as? [[String: Any]])
        return results.map { $0["code"] as? String ?? "done" }
    }
}

@Suite(.timeLimit(.minutes(5))) struct OwnershipTests {
    private let redacted: Set = ["id", "state", "host", "redacted"]

    @Test func `of the requests of others, only id, state and host can be read`() async throws {
        let users = try await Users()
        #expect(try await users.submit(users.alice, "a", #","tag":"t","lane":"l""#).status == 202)
        for peer in [users.bob, users.reader] {
            let entry = try #require(try await users.list(peer)["a"])
            #expect(Set(entry.keys) == redacted)
            #expect(entry["host"] as? String == "api.example" && entry["state"] as? String == "pending")
            let details = try await users.respond(peer, .GET, "/v1/requests/a")
            #expect(Set(details.members.keys) == ["v", "request"])
            #expect(Set(try #require(details.members["request"] as? [String: Any]).keys) == redacted)
            for query in ["?tag=t", "?lane=l"] { #expect(try await users.list(peer, query).isEmpty) }
            let statistics = try await users.respond(peer, .GET, "/v1/queue/stats")
            #expect((statistics.members["counts"] as? [String: Any])?["pending"] as? Int == 1)
        }
        for peer in [users.alice, users.root] {
            #expect(try await users.list(peer, "?tag=t")["a"]?["submitter"] as? Int == 60_001)
            let details = try await users.respond(peer, .GET, "/v1/requests/a")
            #expect(details.members["headers"] as? [[String]] == [["X-A", "b"]])
        }
    }

    @Test func `only users with full access read requests without a submitter`() async throws {
        let users = try await Users()
        let request = QueueRequest(method: "PUT", url: "http://api.example/")
        _ = try await users.queue.enqueue(request, options: EnqueueOptions(id: "own"))
        #expect(try await users.list(users.alice)["own"]?["redacted"] as? Bool == true)
        #expect(try await users.list(users.root)["own"]?["method"] as? String == "PUT")
    }

    @Test func `a request can only be changed by its submitter and with full access`() async throws {
        let users = try await Users()
        for id in ["a", "b", "c"] { try await users.submit(users.alice, id) }
        try await users.submit(users.bob, "d")
        for (method, target) in [
            (HTTPMethod.POST, "/v1/requests/a/hold"), (.POST, "/v1/requests/a/retry"),
            (.DELETE, "/v1/requests/a"),
        ] {
            let response = try await users.respond(users.bob, method, target)
            #expect(response.status == 403 && response.code == "not_submitter", "\(target)")
        }
        let credential = try await users.respond(
            users.bob,
            .POST,
            "/v1/requests/a/credential",
            #"{"credential":"x"}"#
        )
        #expect(credential.code == "not_submitter")
        let many = try await users.respond(users.bob, .POST, "/v1/queue/hold", #"{"ids":["a","d","x","a"]}"#)
        #expect(try users.codes(many) == ["not_submitter", "done", "unknown_request", "not_submitter"])
        let all = try await users.respond(users.bob, .POST, "/v1/queue/cancel", #"{"filter":{}}"#)
        #expect(all.members["done"] as? Int == 1)
        #expect(try await users.respond(users.alice, .POST, "/v1/requests/a/hold").status == 200)
        #expect(try await users.respond(users.root, .DELETE, "/v1/requests/b").status == 200)
        let states = try await users.list(users.root).mapValues { $0["state"] as? String }
        #expect(states == ["a": "held", "b": "cancelled", "c": "pending", "d": "cancelled"])
        #expect(try await users.respond(users.reader, .POST, "/v1/requests/a/hold").code == "forbidden")
        #expect(try await users.respond(users.alice, .POST, "/v1/queue/flush").code == "forbidden")
    }

    @Test func `a request neither repeats nor replaces one of another user`() async throws {
        let users = try await Users()
        try await users.submit(users.alice, "a", #","replace_key":"k""#)
        // The content of the known request is not compared, so the response does not show whether it is the same.
        let repeated = try await users.submit(users.bob, "a", #","replace_key":"k""#)
        #expect(repeated.status == 403 && repeated.code == "not_submitter")
        let full = try await users.submit(users.root, "a", #","replace_key":"k""#)
        #expect(full.status == 422 && full.code == "id_conflict" && full.detail.contains("of the user 60001"))
        #expect(try await users.submit(users.bob, "b", #","replace_key":"k""#).status == 202)
        #expect(try await users.list(users.root)["a"]?["state"] as? String == "pending")
        #expect(try await users.submit(users.alice, "a", #","replace_key":"k""#).status == 202)
        #expect(try await users.submit(users.alice, "c", #","replace_key":"k""#).status == 202)
        let states = try await users.list(users.root).mapValues { $0["state"] as? String }
        #expect(states == ["a": "superseded", "b": "pending", "c": "pending"])
    }

    @Test func `labels of the service are refused, also with full access`() async throws {
        let users = try await Users()
        for peer in [users.alice, users.root] {
            let refused = try await users.submit(peer, "a", #","lane":"netwatch-hooks","fifo":true"#)
            #expect(refused.status == 400 && refused.code == "invalid_option")
            #expect(refused.detail.contains("is `netwatch-hooks`; it must not"), "\(refused.detail)")
        }
        #expect(try await users.list(users.root).isEmpty)
    }

    @Test func `a request may depend on one of another user, which it does not change`() async throws {
        let users = try await Users()
        try await users.submit(users.alice, "a")
        #expect(try await users.submit(users.bob, "b", #","dependencies":["a"]"#).status == 202)
        _ = try await users.respond(users.bob, .DELETE, "/v1/requests/b")
        let states = try await users.list(users.root).mapValues { $0["state"] as? String }
        #expect(states == ["a": "pending", "b": "cancelled"])
    }

    @Test func `the requests and lanes of one user are selected by its id`() async throws {
        let users = try await Users()
        for (peer, id) in [(users.alice, "a"), (users.bob, "b"), (users.root, "c")] {
            try await users.submit(peer, id, #","lane":"l""#)
        }
        #expect(Set(try await users.list(users.root, "?submitter=60001").keys) == ["a"])
        #expect(Set(try await users.list(users.bob, "?submitter=60002").keys) == ["b"])
        // Other users cannot find out who has submitted a request.
        let hold = #"{"filter":{"submitter":60001}}"#
        for (peer, method, target, body) in [
            (users.bob, HTTPMethod.GET, "/v1/requests?submitter=60001", ""),
            (users.reader, .GET, "/v1/requests?submitter=60001", ""),
            (users.bob, .GET, "/v1/events?submitter=60001", ""), (users.bob, .POST, "/v1/queue/hold", hold),
        ] {
            let refused = try await users.respond(peer, method, target, body)
            #expect(refused.status == 403 && refused.code == "forbidden", "\(target)")
            #expect(refused.detail.hasPrefix("`submitter` is 60001, another user; "), "\(refused.detail)")
        }
        let invalid = try await users.respond(users.root, .GET, "/v1/requests?submitter=x")
        #expect(invalid.status == 400 && invalid.code == "invalid_submitter")
        let held = try await users.respond(users.root, .POST, "/v1/queue/hold", hold)
        #expect(held.members["done"] as? Int == 1)
        let paused = try await users.respond(users.root, .POST, "/v1/queue/pause", #"{"submitter":60002}"#)
        #expect(paused.members["lanes"] as? Int == 1 && paused.members["queue_paused"] as? Bool == false)
        let statistics = try await users.respond(users.root, .GET, "/v1/queue/stats").members
        let lanes = try #require(statistics["paused_lanes"] as? [[String: Any]])
        #expect(lanes.map { $0["submitter"] as? Int } == [60_002] && lanes.first?["lane"] as? String == "l")
        let unknown = try await users.respond(users.root, .POST, "/v1/queue/resume", #"{"submitter":1}"#)
        #expect(unknown.status == 404 && unknown.detail == "the queue has no lane of the user 1")
    }

    @Test func `an upload belongs to the user who has started it`() async throws {
        let users = try await Users()
        #expect(try await users.respond(users.alice, .PATCH, "/v1/bodies/u?offset=0", "one").status == 200)
        for (method, target) in [
            (HTTPMethod.PATCH, "/v1/bodies/u?offset=3"), (.PATCH, "/v1/bodies/u?offset=0"),
            (.DELETE, "/v1/bodies/u"),
        ] {
            let response = try await users.respond(users.bob, method, target, method == .PATCH ? "two" : "")
            #expect(response.status == 403 && response.code == "not_submitter", "\(target)")
        }
        let listed = try await users.respond(users.bob, .GET, "/v1/bodies").members["bodies"] as? [Any]
        #expect(listed?.isEmpty == true)
        #expect(try await users.respond(users.bob, .DELETE, "/v1/bodies").members["bodies"] as? Int == 0)
        let staged = #"{"url":"http://a/","method":"PUT","queue":"always","staged":{"id":"u","size":3}}"#
        #expect(try await users.respond(users.bob, .POST, "/v1/requests", staged).code == "not_submitter")
        #expect(try await users.respond(users.alice, .POST, "/v1/requests", staged).status == 202)
        #expect(
            try await users.respond(users.alice, .PATCH, "/v1/bodies/i?offset=0&for=import", "x").code
                == "invalid_for"
        )
    }

    @Test(arguments: [("", 0), (#","keep_submitters":true"#, 60_001)])
    func `imported requests belong to the user who imports, unless it keeps their submitters`(
        member: String,
        submitter: Int
    ) async throws {
        let (source, target) = (try await Users(), try await Users())
        try await source.submit(source.alice, "a")
        let page = try await source.queue.exportPage(after: nil, includingDead: true)
        var trailer = try ExportTrailer()
        trailer.add(page.data)
        let export = String(decoding: page.data + trailer.finish(), as: UTF8.self)
        let size = export.utf8.count
        _ = try await target.respond(target.root, .PATCH, "/v1/bodies/e?offset=0&for=import", export)
        let body = #"{"staged":{"id":"e","size":\#(size)}\#(member)}"#
        let imported = try await target.respond(target.root, .POST, "/v1/queue/import", body)
        #expect(imported.members["imported"] as? Int == 1, "\(imported.members)")
        #expect(try await target.list(target.root)["a"]?["submitter"] as? Int == submitter)
    }

    @Test func `an event of another user's request has only its id, states and host`() async throws {
        let users = try await Users()
        let target = try #require(RequestTarget("/v1/events"))
        let hidden = await users.router.respond(
            to: ControlRequest(method: .GET, target: target, peer: users.reader)
        )
        let whole = await users.router.respond(
            to: ControlRequest(method: .GET, target: target, peer: users.alice)
        )
        try await users.submit(users.alice, "a", #","tag":"t","lane":"l""#)
        func members(_ response: ControlResponse) async throws -> Set<String> {
            let text = String(decoding: try #require(await response.stream?.next()), as: UTF8.self)
            let data = try #require(text.split(separator: "\n").first { $0.hasPrefix("data: ") })
            let object = try JSONSerialization.jsonObject(with: Data(data.dropFirst(6).utf8))
            return Set(try #require(object as? [String: Any]).keys)
        }
        #expect(try await members(hidden) == ["v", "id", "event", "time", "request", "host", "state"])
        #expect(try await members(whole).isSuperset(of: ["tag", "lane", "due", "attempts"]))
    }

    @Test func `an event stream ends before its next event if the access of its user has changed`()
        async throws
    {
        let users = try await Users()
        let target = try #require(RequestTarget("/v1/events"))
        func stream(_ peer: PeerCredentials) async throws -> ControlStream {
            let request = ControlRequest(method: .GET, target: target, peer: peer)
            return try #require(await users.router.respond(to: request).stream)
        }
        let (reader, root) = (try await stream(users.reader), try await stream(users.root))
        try await users.submit(users.root, "a")
        #expect(await reader.next() != nil)
        #expect(await root.next() != nil)
        users.access.replace(policy: AccessPolicy(owner: 60_000), quota: UserQuota())
        try await users.submit(users.root, "b")
        #expect(await reader.next() == nil)
        #expect(await root.next() != nil)
    }
}

@Suite(.timeLimit(.minutes(5))) struct UserQuotaTests {
    private func quota(_ adjust: (inout UserQuota) -> Void) -> UserQuota {
        var quota = UserQuota()
        adjust(&quota)
        return quota
    }

    @Test func `a user has at most its number of unfinished requests, and others are not affected`()
        async throws
    {
        let users = try await Users(quota: quota { $0.requests = 2 })
        for id in ["a", "b"] { #expect(try await users.submit(users.alice, id).status == 202) }
        let third = try await users.submit(users.alice, "c")
        #expect(third.status == 429 && third.code == "quota_exceeded")
        #expect(third.detail == "the user 60001 has 2 requests; its limit is 2")
        #expect(try await users.submit(users.bob, "d").status == 202)
        for id in ["e", "f", "g"] { #expect(try await users.submit(users.root, id).status == 202) }
        #expect(try await users.respond(users.alice, .DELETE, "/v1/requests/a").status == 200)
        #expect(try await users.submit(users.alice, "c").status == 202)
        #expect(try await users.queue.verify().isSound)
    }

    @Test func `a retry beyond the quota is refused, except with full access`() async throws {
        let users = try await Users(quota: quota { $0.requests = 1 })
        try await users.submit(users.alice, "a")
        // Dropping makes `a` dead, and it can be retried.
        try await users.submit(users.alice, "b", #","when_full":"drop-oldest""#)
        let one = try await users.respond(users.alice, .POST, "/v1/requests/a/retry")
        #expect(one.status == 429 && one.code == "quota_exceeded")
        let many = try await users.respond(users.alice, .POST, "/v1/queue/retry", #"{"ids":["a"]}"#)
        #expect(many.status == 429 && many.code == "quota_exceeded")
        let dead = #"{"filter":{"state":["dead"]}}"#
        let all = try await users.respond(users.alice, .POST, "/v1/queue/retry", dead)
        #expect(all.members["done"] as? Int == 0 && all.members["refused"] as? Int == 1)
        #expect(all.code == "quota_exceeded" && all.detail == "the user 60001 has 1 requests; its limit is 1")
        let held = try await users.respond(users.alice, .POST, "/v1/queue/hold", dead)
        #expect(held.members["refused"] as? Int == 1 && held.members["code"] == nil)
        #expect(try await users.respond(users.root, .POST, "/v1/requests/a/retry").status == 200)
    }

    @Test func `dropping the oldest drops only the user's own requests`() async throws {
        let users = try await Users(quota: quota { $0.requests = 1 })
        try await users.submit(users.root, "first")
        try await users.submit(users.alice, "a")
        #expect(try await users.submit(users.alice, "b", #","when_full":"drop-oldest""#).status == 202)
        let states = try await users.list(users.root).mapValues { $0["state"] as? String }
        #expect(states == ["first": "pending", "a": "dead", "b": "pending"])
        let dropped = try await users.submit(users.alice, "c", #","when_full":"drop-newest""#)
        #expect(dropped.members["state"] as? String == "dropped")
    }

    @Test func `a replaced quota applies to the next request`() async throws {
        let users = try await Users(quota: quota { $0.requests = 1 })
        #expect(try await users.submit(users.alice, "a").status == 202)
        #expect(try await users.submit(users.alice, "b").status == 429)
        users.access.replace(policy: users.access.policy, quota: quota { $0.requests = 2 })
        #expect(try await users.submit(users.alice, "b").status == 202)
        users.access.replace(policy: AccessPolicy(owner: 60_000), quota: UserQuota())
        #expect(try await users.submit(users.alice, "c").status == 403)
    }

    @Test func `bytes of requests and of uploads are limited separately`() async throws {
        let users = try await Users(
            quota: quota {
                $0.bytes = 100
                $0.stagedBytes = 10
            }
        )
        #expect(try await users.submit(users.alice, "a").status == 202)
        #expect(try await users.submit(users.alice, "b").status == 202)
        let third = try await users.submit(users.alice, "c")
        #expect(third.status == 429, "\(third.members)")
        let large = String(repeating: "x", count: 101)
        let body = #"{"url":"http://a/","method":"PUT","queue":"always","body":"\#(large)"}"#
        #expect(try await users.respond(users.bob, .POST, "/v1/requests", body).status == 413)
        #expect(
            try await users.respond(users.alice, .PATCH, "/v1/bodies/u?offset=0", "1234567").status == 200
        )
        let piece = try await users.respond(users.alice, .PATCH, "/v1/bodies/v?offset=0", "1234")
        #expect(piece.status == 429 && piece.code == "quota_exceeded")
        #expect(try await users.respond(users.bob, .PATCH, "/v1/bodies/w?offset=0", "1234").status == 200)
        #expect(try await users.respond(users.root, .PATCH, "/v1/bodies/r?offset=0", large).status == 200)
    }

    @Test(.enabled(if: OtherUser.isAvailable, OtherUser.obstacle))
    func `a connection beyond the user's limit is refused, and other users are served`() async throws {
        let directory = try ScratchDirectory()
        try directory.admitEveryone()
        let (path, gate) = (directory.file("socket"), HandlerGate())
        var limits = ControlServer.Limits()
        limits.userConnections = 1
        var policy = AccessPolicy()
        policy.readGroups = [SystemGroup(name: "users", id: 60_001)]
        let server = try ControlServer(
            path: path,
            permissions: policy.socketPermissions,
            router: ControlRouter(
                [
                    .init(.GET, "/", access: .read) { _ in .json(["served"]) },
                    .init(.GET, "/gate", access: .read) { _ in
                        await gate.pass()
                        return .json(["passed"])
                    },
                ],
                access: AccessRules(policy: policy)
            ),
            limits: limits,
            logger: Logger(label: "test")
        )
        defer { withExtendedLifetime(server) {} }
        let user = OtherUser(uid: 60_001)
        async let held = user.curl(path, "/gate")
        await gate.isReached()
        let refused = try await user.curl(path, "/")
        #expect(refused.status == 429 && refused.code == "too_many_connections")
        #expect(refused.detail.hasPrefix("the user 60001 already has 1 connections"))
        #expect(try await OtherUser(uid: 60_002).curl(path, "/").status == 200)
        #expect(try await OtherUser(uid: 0).curl(path, "/").status == 200)
        try server.admit(policy.socketPermissions, userConnections: 2)
        #expect(try await user.curl(path, "/").status == 200)
        await gate.open()
        #expect(try await held.status == 200)
    }
}
