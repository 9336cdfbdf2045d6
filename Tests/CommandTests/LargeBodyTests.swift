internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

/// Bodies that the command uploads in pieces.
@Suite(.serialized, .timeLimit(.minutes(5))) struct LargeBodyTests {
    private let directory = try! ScratchDirectory()

    /// Creates a sparse file.
    private func file(_ megabytes: Int, _ name: String = "large") throws -> String {
        let path = directory.file(name)
        try shell("truncate -s \(megabytes)M \(path)")
        return path
    }

    private var spool: String { directory.file("state/spool") }

    /// Creates a named pipe. Its reader waits until the test writes to it.
    private func pipe() throws -> String {
        let path = directory.file("pipe")
        try #require(mkfifo(path, 0o600) == 0)
        return path
    }

    /// The names of the files in the service's spool.
    private func spooled() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: spool).sorted()
    }

    private func staged(_ service: RunningService) async throws -> [[String: Any]] {
        try await service.run("queue", "staged", "--format", "json").output.map(Command.json)
    }

    private func paused() async throws -> RunningService {
        let service = try await RunningService(in: directory)
        try await service.pause()
        return service
    }

    // MARK: One connection

    /// Runs the command with a limit of 64 descriptors.
    private func limited(_ arguments: [String]) async throws -> Subprocess.Outcome {
        let command = ["-c", "ulimit -n 64; exec \"$@\"", "sh", Command.path] + arguments
        return try await Subprocess("/bin/sh", command).outcome()
    }

    @Test func `a body with more pieces than connections is sent, with 64 descriptors`()
        async throws
    {
        let service = try await paused()
        let sent = try await limited([
            "send", "--queue", "always", "-T", try file(80), "http://127.0.0.1:1/", "--socket",
            service.socket,
        ])
        #expect(sent.ending == .exited(0), "\(sent.errors)")
        #expect(try await service.queue().first?["body_bytes"] as? Int == 80 << 20)
        #expect(try spooled().count == 1)
    }

    @Test func `an import with more pieces than connections succeeds`() async throws {
        let (one, other) = (try ScratchDirectory(), try ScratchDirectory())
        let from = try await RunningService(in: one)
        try await from.pause()
        try await from.keep("http://127.0.0.1:1/", "-T", try file(52))
        let export = directory.file("export")
        try shell("\(Command.path) queue export --socket \(from.socket) >\(export)")
        let size = try FileManager.default.attributesOfItem(atPath: export)[.size] as? Int
        #expect(try #require(size) > 65 << 20)
        let to = try await RunningService(in: other)
        try await to.pause()
        let imported = try await limited(["queue", "import", export, "--socket", to.socket])
        #expect(
            imported.ending == .exited(0) && imported.errors == ["imported 1 request"],
            "\(imported.errors)"
        )
        #expect(try await to.queue().first?["body_bytes"] as? Int == 52 << 20)
        #expect(try await staged(to).isEmpty)
    }

    /// Responds as the service does.
    private static func answer(_ request: ScriptedServer.Request) -> ScriptedServer.Action {
        guard request.method == "PATCH" else {
            return request.method == "DELETE"
                ? .respond(#"{"bodies":1,"bytes":1,"v":1}"#) : .respond(#"{"id":"a","state":"queued","v":1}"#)
        }
        let offset = Int(request.target.split(separator: "=")[1].prefix { $0.isNumber })!
        return .respond(#"{"id":"b","size":\#(offset + request.body.count),"v":1}"#)
    }

    /// Returns the requests without the empty pieces that a command sends when it has read no piece for three seconds,
    /// which may happen on a busy machine.
    private static func withoutKeepAlives(_ requests: [ScriptedServer.Request]) -> [ScriptedServer.Request] {
        requests.filter { $0.method != "PATCH" || !$0.body.isEmpty }
    }

    /// Sends a body of five pieces to the socket.
    private func sendInPieces() async throws -> Subprocess.Outcome {
        try await Command.run(
            "send",
            "http://127.0.0.1:1/",
            "-T",
            try file(5),
            "--queue",
            "always",
            "--socket",
            directory.file("socket")
        )
    }

    @Test func `all requests of a command use one connection`() async throws {
        let service = try ScriptedServer(unixPath: directory.file("socket")) { Self.answer($0) }
        let sent = try await sendInPieces()
        #expect(sent.ending == .exited(0), "\(sent.errors)")
        let pieces = Self.withoutKeepAlives(service.requests)
        #expect(pieces.map(\.method) == Array(repeating: "PATCH", count: 5) + ["POST"])
        #expect(service.connectionCount == 1)
    }

    @Test func `an idle connection closed by the service is replaced once`() async throws {
        let service = try ScriptedServer(unixPath: directory.file("socket")) { request in
            guard request.number == 2, case .respond(_, _, let body) = Self.answer(request) else {
                return Self.answer(request)
            }
            let head = "HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n\r\n"
            return .send(Array(head.utf8) + body, then: .close)
        }
        let sent = try await sendInPieces()
        #expect(sent.ending == .exited(0), "\(sent.errors)")
        let pieces = Self.withoutKeepAlives(service.requests)
        #expect(pieces.map(\.method) == Array(repeating: "PATCH", count: 5) + ["POST"])
        #expect(Set(pieces.map(\.target)).count == 6, "no piece is sent twice")
        #expect(service.connectionCount == 2)
    }

    @Test func `a piece whose response was lost is sent again and recognized`() async throws {
        let service = try ScriptedServer(unixPath: directory.file("socket")) { request in
            switch request.number {
            // The service stored the piece and closed the connection without a response.
            case 2: return .close
            case 3:
                let problem = #"{"code":"wrong_offset","detail":"x","offset":2097152,"status":409}"#
                return .respond(status: 409, headers: [], body: Array(problem.utf8))
            default: return Self.answer(request)
            }
        }
        let sent = try await Command.run(
            "send",
            "http://127.0.0.1:1/",
            "-T",
            try file(3),
            "--queue",
            "always",
            "--socket",
            directory.file("socket")
        )
        #expect(sent.ending == .exited(0), "\(sent.errors)")
        let targets = service.requests.filter { $0.method == "PATCH" }.map {
            $0.target.split(separator: "=")[1]
        }
        #expect(targets == ["0", "1048576", "1048576", "2097152"])
    }

    @Test
    func `an edit whose response was lost is not sent again, even on a reused connection`()
        async throws
    {
        let service = try ScriptedServer(unixPath: directory.file("socket")) { request in
            switch request.number {
            case 1:
                let result = #"{"code":"unknown_request","done":false,"id":"a-long-i","v":1}"#
                return .respond(#"{"results":[\#(result)],"v":1}"#)
            case 2: return .respond(#"{"ids":["a-long-id"],"v":1}"#)
            // The command cannot know whether the service applied the edit.
            default: return .close
            }
        }
        let socket = directory.file("socket")
        let dropped = try await Command.run("queue", "cancel", "a-long-i", "--socket", socket)
        #expect(dropped.ending == .exited(2), "\(dropped.errors)")
        #expect(service.requests.map(\.connection) == [1, 1, 1])
    }

    @Test func `an upload is kept alive while standard input is silent`() async throws {
        let (socket, rest) = (directory.file("socket"), try pipe())
        let service = try ScriptedServer(unixPath: socket) { Self.answer($0) }
        let input = "(head -c 1048576 /dev/zero; cat \(rest))"
        let command = "\(Command.path) send http://127.0.0.1:1/ -T - --queue always --socket \(socket)"
        let sending = try Subprocess("/bin/sh", ["-c", "\(input) | \(command)"])
        let requests = await service.requests(atLeast: 2)
        #expect(requests[1].method == "PATCH" && requests[1].body.isEmpty)
        #expect(requests[1].target.hasSuffix("?offset=1048576"))
        try shell("echo rest >\(rest)")
        let sent = try await sending.outcome()
        #expect(sent.ending == .exited(0), "\(sent.errors)")
        let last = service.requests.filter { $0.method == "PATCH" }.last
        #expect(last?.target.hasSuffix("?offset=1048576") == true && last?.body == Array("rest\n".utf8))
        #expect(service.connectionCount == 1)
    }

    // MARK: Staged bodies

    @Test func `uploads of killed commands are listed, counted and cleared`() async throws {
        let service = try await paused()
        for number in 1...2 {
            // The first piece of a body that does not end before the kill.
            let body = Pipe()
            let sending = try Command.start(
                ["send", "http://127.0.0.1:1/", "-T", "-", "--socket", service.socket],
                input: body.fileHandleForReading.fileDescriptor
            )
            // Otherwise the write would not fail after the kill, and could block forever.
            try body.fileHandleForReading.close()
            let output = body.fileHandleForWriting.fileDescriptor
            try startDetachedThread(named: "body") {
                let piece = [UInt8](repeating: 0, count: 1 << 20)
                _ = write(output, piece, piece.count)
            }
            try await until(changesIn: spool) { try await staged(service).count >= number }
            sending.signal(SIGKILL)
            #expect(try await sending.end() == .signalled(SIGKILL))
            withExtendedLifetime(body) {}
        }
        let listed = try await service.run("queue", "staged")
        #expect(listed.output.count == 2 && listed.errors.first?.hasPrefix("2 uploads, ") == true)
        let statistics = try await Command.json(service.curl("/v1/queue/stats"))
        #expect(statistics["staged_bodies"] as? Int == 2)
        #expect(try #require(statistics["staged_bytes"] as? Int) > 0)
        #expect(
            try await service.run("queue", "stats").output.contains { $0.hasPrefix("staged      2 uploads") }
        )
        #expect(try spooled().count == 2)
        let first = try #require(try await staged(service).first?["id"] as? String)
        #expect(try await service.run("queue", "staged", "--clear", first).ending == .exited(0))
        #expect(try await staged(service).count == 1)
        #expect(
            try await service.run("queue", "staged", "--clear").errors.first?.hasPrefix("removed 1 upload")
                == true
        )
        #expect(try await staged(service).isEmpty && spooled().isEmpty)
        let nothing = try await service.run("queue", "staged", "--clear", first)
        #expect(nothing.ending == .exited(1), "\(nothing.errors)")
    }

    @Test func `an upload cleared during its transfer is not accepted`() async throws {
        let service = try await paused()
        let rest = try pipe()
        let input = "(head -c 1048576 /dev/zero; cat \(rest))"
        let command = "\(Command.path) send http://127.0.0.1:1/ -T - --socket \(service.socket)"
        let sending = try Subprocess("/bin/sh", ["-c", "\(input) | \(command)"])
        try await until(changesIn: spool) { try await !staged(service).isEmpty }
        #expect(try await service.run("queue", "staged", "--clear").ending == .exited(0))
        try shell("echo rest >\(rest)")
        let sent = try await sending.outcome()
        #expect(sent.ending == .exited(2) && sent.output.isEmpty, "\(sent.errors)")
        #expect(
            sent.errors.first?.hasSuffix(": a request used it, or it was removed") == true
        )
        #expect(try await service.queue().isEmpty)
    }

    @Test func `abandoned uploads do not block the next large body`() async throws {
        let service = try await paused()
        try shell("head -c 1048576 /dev/zero >\(directory.file("piece"))")
        let pieces = "--data-binary @\(directory.file("piece")) -X PATCH"
        let taken = try await service.curl("/v1/bodies/abandoned-[1-64]?offset=0 \(pieces)")
        #expect(taken.split(separator: "\n").count == 64)
        let large = try file(3)
        // An abandoned upload can be evicted ten seconds after its last piece.
        var sent: Subprocess.Outcome
        repeat {
            sent = try await service.run("send", "--queue", "always", "http://127.0.0.1:1/", "-T", large)
        } while sent.ending == .exited(75)
        #expect(sent.ending == .exited(0), "\(sent.errors)")
        #expect(try await staged(service).count == 63)
    }

    @Test func `an upload whose request is rejected is removed`() async throws {
        let service = try await paused()
        let refused = try await service.run("send", "ftp://127.0.0.1/", "-T", try file(3))
        #expect(refused.ending == .exited(64), "\(refused.errors)")
        #expect(try spooled().isEmpty)
        #expect(try await staged(service).isEmpty)
    }

    @Test func `a wrong size and a concurrently used id get clear errors`() async throws {
        let service = try await paused()
        try shell("head -c 100000 /dev/zero >\(directory.file("piece"))")
        let piece = "--data-binary @\(directory.file("piece")) -X PATCH"
        _ = try await service.curl("/v1/bodies/once?offset=0 \(piece)")
        for size in [99_999, 100_001, 0] {
            let staged = #"{"id":"once","size":\#(size)}"#
            let message = #"{"url":"http://127.0.0.1:1/","method":"PUT","staged":\#(staged)}"#
            let answer = try await Command.json(service.curl("/v1/requests -d '\(message)'"))
            #expect(answer["code"] as? String == "wrong_offset" && answer["offset"] as? Int == 100_000)
            #expect((answer["detail"] as? String)?.hasPrefix("the upload `once` has 100000 bytes, ") == true)
        }
        let message =
            #"{"url":"http://127.0.0.1:1/","method":"PUT","queue":"always","staged":{"id":"once","size":100000}}"#
        let both = try (0..<2).map { _ in
            try Subprocess(
                "/usr/bin/curl",
                ["-sS", "--unix-socket", service.socket, "-d", message, "http://netwatch/v1/requests"]
            )
        }
        var answers: [[String: Any]] = []
        for curl in both {
            answers.append(try Command.json(try #require(try await curl.outcome().output.first)))
        }
        #expect(answers.count { $0["state"] as? String == "queued" } == 1, "\(answers)")
        let refused = try #require(answers.first { $0["code"] != nil })
        #expect(refused["code"] as? String == "unknown_staged_body")
        #expect(try await service.queue().count == 1)
        #expect(try spooled().count == 1)
    }
}
