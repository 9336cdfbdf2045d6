internal import NetwatchEventLoop
internal import NetwatchTestSupport

/// The server's behaviour in one seed. The response to the first, second, … time that a URL is requested is the same on
/// every run.
final class FaultyResponses: Sendable {
    private let seed: UInt64
    private let visits = Lock<[String: UInt64]>([:])
    /// Blocks stalled connections until it is opened.
    private let gate = Gate()

    init(seed: UInt64) {
        self.seed = seed
    }

    /// Lets all stalled connections continue. Later connections do not stall any more.
    func release() { gate.open() }

    /// Returns the action for a request. Called on the thread of the connection.
    func answer(_ request: ScriptedServer.Request) -> ScriptedServer.Action {
        let parts = request.target.split(separator: "/")
        // A late request of an earlier seed gets no response.
        guard parts.first == "\(seed)", let number = parts.dropFirst().first else { return .close }
        let visit = visits.withLock { visits in
            visits[String(number), default: 0] += 1
            return visits[String(number)]!
        }
        var generator = SeededGenerator(
            seed: seed &* 1_000_003 &+ (UInt64(number) ?? 0) &* 1009 &+ visit
        )
        return action(request, &generator)
    }

    private func action(
        _ request: ScriptedServer.Request,
        _ generator: inout SeededGenerator
    ) -> ScriptedServer.Action {
        switch Int.random(in: 0..<16, using: &generator) {
        case 0: return challenge("Basic realm=\"netwatch\"")
        case 1: return challenge("Digest realm=\"netwatch\", nonce=\"\(generator.next())\", qop=\"auth\"")
        case 2: return .respond(status: 503, body: [1, 2, 3])
        case 3: return redirect(307, request)
        case 4: return redirect(303, request)
        case 5: return .close
        case 6: return .reset
        case 7: return stall(then: .respond("late"))
        case 8: return .endlessHeaders
        case 9: return .send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", then: .close)
        case 10: return part(of: request, generator.next())
        case 11: return .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe", then: .reset)
        default: return .respond(status: 200, headers: Self.version, body: Self.body)
        }
    }

    private static let body = [UInt8](repeating: 0x78, count: 50_000)
    private static let version = [ScriptedServer.Header("ETag", "\"1\""), .init("Accept-Ranges", "bytes")]

    private func challenge(_ text: String) -> ScriptedServer.Action {
        .respond(status: 401, headers: [.init("WWW-Authenticate", text)], body: Array("who?".utf8))
    }

    private func redirect(_ status: Int, _ request: ScriptedServer.Request) -> ScriptedServer.Action {
        .respond(status: status, headers: [.init("Location", "\(request.target)/x")])
    }

    /// Blocks until ``release()`` is called. Each connection has a separate thread, which may block.
    private func stall(then action: ScriptedServer.Action) -> ScriptedServer.Action {
        gate.wait()
        gate.open()
        return action
    }

    /// Returns the remaining bytes if a range was requested, otherwise a truncated body.
    private func part(of request: ScriptedServer.Request, _ number: UInt64) -> ScriptedServer.Action {
        let offset = request.values(of: "Range").first.flatMap { Int($0.dropFirst(6).dropLast()) }
        if let offset, offset < Self.body.count {
            let range = "bytes \(offset)-\(Self.body.count - 1)/\(Self.body.count)"
            let headers = Self.version + [.init("Content-Range", range)]
            return .respond(status: 206, headers: headers, body: Array(Self.body[offset...]))
        }
        let head = "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: \(Self.body.count)\r\n\r\n"
        let count = Int(number % UInt64(Self.body.count))
        return .send(
            head,
            then: .send(Array(Self.body.prefix(count)), then: number % 2 == 0 ? .close : .reset)
        )
    }
}
