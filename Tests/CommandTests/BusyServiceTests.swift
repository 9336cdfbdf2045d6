internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

/// Messages and exit statuses that distinguish a busy service, a stopped service, and missing permission.
@Suite(.serialized, .timeLimit(.minutes(5))) struct BusyServiceTests {
    private let directory = try! ScratchDirectory()
    private var socket: String { directory.file("socket") }

    private static let busy = ScriptedServer.Action.respond(
        status: 503,
        headers: [.init("Retry-After", "9")],
        body: Array(#"{"code":"busy","detail":"1000 clients wait","status":503}"#.utf8)
    )

    @Test func `a busy service is reported as busy`() async throws {
        let service = try ScriptedServer(unixPath: socket) { _ in Self.busy }
        for arguments in [
            ["queue", "list"], ["send", "http://127.0.0.1:1/"], ["queue", "cancel", "--all", "--yes"],
        ] {
            let outcome = try await Command.start(arguments + ["--socket", socket]).outcome()
            #expect(outcome.ending == .exited(75), "\(arguments): \(outcome.errors)")
            let words = outcome.errors.joined(separator: "\n")
            #expect(words.contains("is busy: 1000 clients wait"), "\(words)")
            #expect(words.contains("nothing was changed") && !words.contains("netwatch serve"), "\(words)")
        }
        #expect(service.requests.count == 3)
        let status = ["status", "--timeout", "30s", "--socket", socket]
        let text = try await Command.start(status).outcome().output
        #expect(text.contains { $0.hasPrefix("service     busy, pid") }, "\(text)")
        let json = try await Command.start(status + ["--format", "json"]).outcome().output
        let object = try Command.json(try #require(json.last))
        #expect((object["service"] as? [String: Any])?["state"] as? String == "busy")
    }

    @Test func `a service that becomes busy during --wait has accepted the request`() async throws {
        let service = try ScriptedServer(unixPath: socket) { request in
            request.method == "POST" ? .respond(#"{"id":"a","state":"queued","v":1}"#) : Self.busy
        }
        let sent = try await Command.run("send", "http://127.0.0.1:1/", "--wait", "--socket", socket)
        #expect(sent.ending == .exited(75) && sent.output == ["a"], "\(sent.errors)")
        #expect(sent.errors.first == "queued: the service is too busy to report the result")
        #expect(service.connectionCount == 1)
    }

    @Test func `retries on a busy service end with the timeout of --wait`() async throws {
        let service = try ScriptedServer(unixPath: socket) { request in
            guard request.method == "GET" else { return .respond(#"{"id":"a","state":"queued","v":1}"#) }
            return .respond(status: 503, headers: [.init("Retry-After", "1")], body: [])
        }
        let sent = try await Command.run("send", "http://127.0.0.1:1/", "--wait=1s", "--socket", socket)
        #expect(sent.ending == .exited(75) && sent.output == ["a"], "\(sent.errors)")
        // A second GET would come after the `--wait` limit.
        #expect(service.requests.map(\.method) == ["POST", "GET"])
    }

    @Test func `a command retries while the service is briefly busy`() async throws {
        _ = directory
        let service = try ScriptedServer(unixPath: socket) { request in
            guard request.number == 1 else { return .respond(#"{"counts":{},"requests":[],"v":1}"#) }
            return .respond(status: 503, headers: [.init("Retry-After", "0")], body: [])
        }
        let listed = try await Command.run("queue", "list", "--socket", socket)
        #expect(listed.ending == .exited(0), "\(listed.errors)")
        #expect(service.requests.count == 2)
    }

    /// The service sends `Retry-After: 5`, which equals the time for which a command usually retries. So only the
    /// longer time of an upload lets the command succeed.
    @Test func `an upload is kept alive while the service is busy`() async throws {
        let file = directory.file("body")
        try Data(count: (1 << 20) + 5).write(to: URL(fileURLWithPath: file))
        let refused = Recorder<String>()
        let service = try ScriptedServer(unixPath: socket) { request in
            let isEmpty = request.method == "PATCH" && request.body.isEmpty
            let isFirst = request.target.hasSuffix("offset=0")
            if !isEmpty, !isFirst, request.method != "DELETE", !refused.values.contains(request.method) {
                refused.record(request.method)
                return .respond(status: 503, headers: [.init("Retry-After", "5")], body: [])
            }
            if request.method == "POST" { return .respond(#"{"id":"a","state":"queued","v":1}"#) }
            let isWhole = request.body.count == 5 || request.target.hasSuffix("offset=\((1 << 20) + 5)")
            return .respond(#"{"id":"a","size":\#((1 << 20) + (isWhole ? 5 : 0)),"v":1}"#)
        }
        let sent = try await Command.run("send", "http://127.0.0.1:1/", "-T", file, "--socket", socket)
        #expect(sent.ending == .exited(0) && sent.output == ["a"], "\(sent.errors)")
        let seen = service.requests.map { "\($0.method) \($0.body.isEmpty ? 0 : 1)" }
        #expect(
            seen == ["PATCH 1", "PATCH 1", "PATCH 0", "PATCH 1", "POST 1", "PATCH 0", "POST 1"],
            "\(seen)"
        )
        #expect(refused.values == ["PATCH", "POST"])
    }

    @Test func `a service with a full backlog is busy`() async throws {
        let service = try FullSocket(at: socket)
        defer { service.close() }
        let listed = try await Command.run("queue", "list", "--socket", socket)
        #expect(listed.ending == .exited(75), "\(listed.errors)")
        #expect(
            listed.errors.first?.contains("it does not accept more connections") == true,
            "\(listed.errors)"
        )
    }

    @Test func `a command without a service exits with 69`() async throws {
        for path in [directory.file("nothing"), socket] {
            if path == socket { _ = try ScriptedServer(unixPath: socket) }
            let outcome = try await Command.run("queue", "list", "--socket", path)
            #expect(outcome.ending == .exited(69), "\(outcome.errors)")
            #expect(outcome.errors.first == "error: no service listens on `\(path)`")
            #expect(outcome.errors.last?.contains("`--state-dir` opens the queue's directory") == true)
        }
    }

    @Test(.enabled(if: OtherUsers.areAvailable, "becoming another user needs root"))
    func `a socket without permission exits with 77`() async throws {
        let service = try ScriptedServer(unixPath: socket)
        try shell("chmod 755 \(directory.path); chmod 600 \(socket)")
        let list = [Command.path, "queue", "list", "--socket", socket]
        let other = try Subprocess("/usr/bin/setpriv", ["--reuid=65534", "--clear-groups"] + list)
        let outcome = try await other.outcome()
        #expect(outcome.ending == .exited(77), "\(outcome.errors)")
        #expect(outcome.errors.first?.contains("this user may not connect to the service") == true)
        #expect(service.requests.isEmpty)
    }

    @Test func `HTTP 403 from the service exits with 77`() async throws {
        let service = try ScriptedServer(unixPath: socket) { _ in
            let problem = #"{"code":"forbidden","detail":"the user 1 may not edit","status":403}"#
            return .respond(status: 403, headers: [], body: Array(problem.utf8))
        }
        let outcome = try await Command.run("queue", "list", "--socket", socket)
        #expect(outcome.ending == .exited(77) && outcome.errors.first == "error: the user 1 may not edit")
        #expect(service.requests.count == 1)
    }
}

/// A unix socket that accepts no connections and whose backlog is full.
private struct FullSocket {
    private var descriptors: [CInt] = []

    init(at path: String) throws {
        let listener = try Self.opened()
        descriptors.append(listener)
        try withUnixAddress(path) { address, length in
            try systemCall("bind") { bind(listener, address, length) }
            try systemCall("listen") { listen(listener, 0) }
            repeat {
                descriptors.append(try Self.opened())
            } while connect(descriptors.last!, address, length) == 0
            try #require(errno == EAGAIN)
        }
    }

    private static func opened() throws -> CInt {
        let kind = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        return try systemCall("socket") { socket(AF_UNIX, kind, 0) }
    }

    func close() {
        for descriptor in descriptors { Glibc.close(descriptor) }
    }
}
