internal import Foundation
internal import NIOHTTP1
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

/// The tables of docs/control-api.md: what each class of access can use, and how much of it. The tests try every route
/// and every limit as each class. The routes and the limits come from the sources, so one without a row is a failure.
@Suite(.timeLimit(.minutes(5))) struct AccessTableTests {
    private static let page = try! DocumentationPage("docs/control-api.md")

    private static let rules: AccessRules = {
        var policy = AccessPolicy(owner: 60_000, unmapped: UnmappedIDs(user: 65_534, group: 65_534))
        policy.submitGroups = [SystemGroup(name: "submitters", id: 60_010)]
        policy.readGroups = [SystemGroup(name: "readers", id: 60_011)]
        return AccessRules(policy: policy)
    }()

    /// A client of each class.
    private static let peers: [Access: PeerCredentials] = [
        .none: PeerCredentials(pid: 1, uid: 60_001, gid: 60_001),
        .read: PeerCredentials(pid: 1, uid: 60_002, gid: 60_011),
        .submit: PeerCredentials(pid: 1, uid: 60_003, gid: 60_001, groups: [60_010]),
        .full: PeerCredentials(pid: 1, uid: 60_000, gid: 60_000),
    ]

    /// The texts in backticks of a cell.
    private static func names(_ cell: String) -> [String] {
        cell.matches(of: /`([^`]+)`/).map { String($0.1) }
    }

    // MARK: Routes

    /// The documented class of each route. A name without a method replaces the last part of the route before it.
    private static var documentedRoutes: [String: Access] {
        var routes: [String: Access] = [:]
        for row in page.rows where row.count == 3 {
            guard row[0].contains(" /"), let access = Access.allCases.first(where: { "\($0)" == row[1] })
            else { continue }
            var last = ""
            for name in names(row[0]) {
                let route = String(name.prefix { $0 != "?" })
                last = route.contains(" ") ? route : last.replacing(/[^\/]+$/, with: route)
                routes[last] = access
            }
        }
        return routes
    }

    private static func response(
        to route: ControlRouter.Route,
        _ peer: PeerCredentials?,
        by router: ControlRouter
    ) async throws -> ControlResponse {
        let path = route.path.replacing(/[{][a-z]+[}]/, with: "no-such-name")
        let target = try #require(RequestTarget(path))
        return await router.respond(to: ControlRequest(method: route.method, target: target, peer: peer))
    }

    @Test func `each class can use exactly the routes of its row and of those above`() async throws {
        let fixture = try await OpenAPIFixture()
        let routes = fixture.state.routes(access: Self.rules)
        let router = ControlRouter(routes, access: Self.rules)
        let documented = Self.documentedRoutes
        #expect(Set(documented.keys) == Set(routes.map { "\($0.method.rawValue) \($0.path)" }))
        var differences: [String] = []
        for route in routes {
            let name = "\(route.method.rawValue) \(route.path)"
            let least = try #require(documented[name])
            for (access, peer) in Self.peers {
                let response = try await Self.response(to: route, peer, by: router)
                let isForbidden = String(decoding: response.body, as: UTF8.self).contains(
                    #""code":"forbidden""#
                )
                if isForbidden != (access < least) { differences.append("\(name) as \(access)") }
            }
        }
        #expect(differences == [] && Set(Self.peers.keys) == Set(Access.allCases))
        await fixture.stop()
    }

    @Test func `a client over TCP can use the routes of the status page, and changes nothing`() async throws {
        let fixture = try await OpenAPIFixture()
        let routes = fixture.state.readOnlyRoutes
        let router = ControlRouter(routes)
        for route in routes {
            let response = try await Self.response(to: route, nil, by: router)
            #expect(route.method == .GET && [200, 404].contains(response.status.code), "\(route.path)")
        }
        await fixture.stop()
    }

    // MARK: Limits

    /// The numbers in the cells after the name of a limit, such as `16 MiB`; `nil` for an empty cell.
    private static func numbers(_ name: String, column: Int) throws -> [Int?] {
        let row = try #require(page.rows.first { $0[0].hasPrefix(name) && $0.count >= 4 }, "no row `\(name)`")
        return row.dropFirst(column).map { cell in
            let words = cell.split(separator: " ")
            return words.first.flatMap { Int($0) }.map { words.last == "MiB" ? $0 << 20 : $0 }
        }
    }

    /// What all users, those without full access, and one of these can have of each limit.
    private static func shares(_ limit: Int) -> [Int?] {
        [.all, .users, .user].map { SharedLimit(limit).value(for: $0) }
    }

    /// The properties of the limits that all users share, and the beginnings of their rows.
    private static let rows: [String: String] = [
        "servedBytes": "bodies of the requests that are served in one class",
        "arrivingConnections": "connections whose request is not complete",
        "idleConnections": "connections between two requests",
        "respondingConnections": "connections with a response",
        "respondingBytes": "responses that the clients have not read",
        "lingeringConnections": "connections whose last response was sent",
        "refusedConnections": "connections that were refused",
        "userConnections": "connections of one user",
        "calls": "`call`", "sends": "`send`", "waits": "`wait`", "uploads": "`upload`",
    ]

    /// The limits of a single request.
    private static let others: Set<String> = [
        "headerBytes", "headerFieldBytes", "headerFields", "bodyBytes", "smallBodyBytes",
    ]

    @Test func `every limit has a row with its number`() throws {
        let limits = ControlServer.Limits()
        let counts = Mirror(reflecting: limits).children.compactMap { child in
            (child.value as? Int).map { (name: child.label ?? "", value: $0) }
        }.filter { !Self.others.contains($0.name) }
        #expect(Set(counts.map(\.name)) == Set(Self.rows.keys))
        for (name, value) in counts where name != "userConnections" {
            let row = try #require(Self.rows[name])
            let numbers = try Self.numbers(row, column: row.hasPrefix("`") ? 2 : 1)
            #expect(numbers.first == value, "\(name)")
        }
        #expect(try Self.numbers("connections of one user", column: 3) == [limits.userConnections])
        let arriving = try Self.numbers("connections whose request is not complete", column: 3)
        #expect(arriving == [limits.userConnections(within: .max)])
        let (read, submit) = try (classRow("read"), classRow("submit"))
        #expect(read.contains("\(limits.userConnections) connections") && read.contains("4 MiB of bodies"))
        let quota = UserQuota()
        #expect(
            quota.requests == 100_000 && submit.contains("100,000 unfinished requests of 1 GiB in total")
                && quota.bytes == 1 << 30
        )
        #expect(quota.stagedBytes == 1 << 30 && submit.contains("16 uploads of 1 GiB in total"))
    }

    /// The last cell of a class of access: what it can use up.
    private func classRow(_ name: String) throws -> String {
        try #require(Self.page.rows.first { $0.count == 5 && $0[0] == name }).last ?? ""
    }

    @Test(arguments: ConnectionClass.allCases)
    func `each class of access gets the documented slots`(of connectionClass: ConnectionClass) throws {
        let documented = try Self.numbers("`\(connectionClass.rawValue)`", column: 2)
        var limiter = ConnectionLimiter(limits: ControlServer.Limits())
        /// Requests slots until none is left.
        func fill(_ user: UInt32?, bytes: Int = 0) -> Int {
            var count = 0
            while limiter.requestSlot(connectionClass, limiter.add(for: user), bytes: bytes) == .admitted {
                count += 1
            }
            return count
        }
        let taken = (1...5).map { fill($0) }
        let all = taken.reduce(0, +)
        #expect([all + fill(nil), all, taken[0]] == documented)
        #expect(taken[1] == taken[0] && taken[4] == 0, "the others have their own shares")
        limiter = ConnectionLimiter(limits: ControlServer.Limits())
        #expect(fill(nil) == documented[0], "full access may take all")
        guard connectionClass != .upload else { return }
        let bytes = try Self.numbers("bodies of the requests", column: 1).compactMap { $0.map { $0 >> 16 } }
        limiter = ConnectionLimiter(limits: ControlServer.Limits())
        // Bodies of 64 KiB. The class `call` has fewer slots than such bodies.
        let bodies = [fill(1, bytes: 1 << 16), fill(2, bytes: 1 << 16)]
        #expect(bodies.allSatisfy { $0 == min(bytes[2], taken[0]) })
    }

    @Test func `each class of access gets the documented uploads`() async throws {
        let directory = try ScratchDirectory()
        let queue = try await directory.openQueue()
        /// Starts uploads until none is permitted.
        func fill(_ submitter: Submitter) async -> Int {
            var count = 0
            while true {
                let id = "\(submitter.user)-\(count)"
                let size = try? await queue.appendToBody(id, Data(), at: 0, for: .request, by: submitter)
                guard size != nil else { return count }
                count += 1
            }
        }
        var taken: [Int] = []
        for user in 1...5 as ClosedRange<UInt32> {
            taken.append(await fill(Submitter(user: user, quota: UserQuota())))
        }
        let all = taken.reduce(0, +)
        let rest = await fill(Submitter(user: 0))
        let documented = try Self.numbers("uploads that no request uses yet", column: 1)
        #expect([all + rest, all, taken[0]] == documented && documented == Self.shares(64), "\(taken)")
        await queue.stop()
    }
}
