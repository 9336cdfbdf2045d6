internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// The credentials of a transfer are never sent with another transfer.
@Suite(.timeLimit(.minutes(5))) struct CredentialLeakTests {
    /// The way in which a transfer with credentials ends.
    enum Ending: String, CaseIterable, Sendable {
        case response, challenge, digest, close, reset, cancel
        /// The source of the request's body fails.
        case body
    }

    private static func action(for ending: Ending) -> ScriptedServer.Action {
        switch ending {
        case .response: .respond("")
        case .challenge: .respond(status: 401, headers: [.init("WWW-Authenticate", "Basic realm=\"x\"")])
        case .digest:
            .respond(status: 401, headers: [.init("WWW-Authenticate", "Digest realm=\"x\", nonce=\"n\"")])
        case .close, .body: .close
        case .reset: .reset
        case .cancel: .stall(then: .close)
        }
    }

    private func secret(_ url: String, _ schemes: TransferCredentials.Schemes?, _ ending: Ending)
        -> TransferRequest
    {
        var request = TransferRequest(url: url + "/secret", method: ending == .body ? "PUT" : "GET")
        if ending == .body {
            request.body = .source(SteppedSource(length: 1, [.failed(SystemError(call: "read", errno: EIO))]))
        }
        if let schemes {
            request.credentials = TransferCredentials(
                user: "user",
                password: "secret",
                schemes: schemes,
                isPreemptive: schemes == .basic
            )
        } else {
            request.headers = [.init("Authorization", "Bearer secret")]
        }
        return request
    }

    @Test(arguments: Ending.allCases)
    func `a transfer without credentials sends none after one with credentials`(ending: Ending) async throws {
        let server = try ScriptedServer { request in
            request.target == "/secret" ? Self.action(for: ending) : .respond("")
        }
        let engine = try TransferEngine(resolver: .answering("127.0.0.1"))
        let hosts = ["http://one.test:\(server.port)", "http://two.test:\(server.port)"]
        for schemes in [nil, .basic, .digest, .all] as [TransferCredentials.Schemes?] {
            for _ in 0..<3 {
                let recorder = TransferRecorder()
                let count = server.requests.count
                let id = engine.start(secret(hosts[0], schemes, ending)) { recorder.deliver($0) }
                if ending == .cancel {
                    await server.requests(atLeast: count + 1)
                    engine.cancel(id)
                }
                await recorder.end()
                for host in hosts { #expect(await engine.run(TransferRequest(url: host)).hasSucceeded) }
            }
        }
        let others = server.requests.filter { $0.target == "/" }
        #expect(others.count == 24)
        #expect(others.allSatisfy { $0.values(of: "Authorization").isEmpty })
        #expect(server.requests.contains { !$0.values(of: "Authorization").isEmpty } || ending == .body)
    }

    @Test func `a transfer without credentials sends none after one whose request could not be sent`()
        async throws
    {
        // libcurl cannot send a body of unknown length to an HTTP/1.0 server. It detects this after it has created the
        // `Authorization` field, which `curl_easy_reset(3)` would leave in the handle.
        let old = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n"
        let server = try ScriptedServer { _ in .send(old, then: .keep) }
        let engine = try TransferEngine(resolver: .answering("127.0.0.1"))
        let hosts = ["http://one.test:\(server.port)", "http://two.test:\(server.port)"]
        _ = await engine.run(TransferRequest(url: hosts[0]))
        var unsendable = secret(hosts[0], .basic, .body)
        unsendable.body = .source(SteppedSource(length: nil, [.bytes([1]), .end]))
        let failure = await engine.run(unsendable).failure
        #expect(failure?.code == 25 && failure?.bytesSent == 0)
        for host in hosts { #expect(await engine.run(TransferRequest(url: host)).hasSucceeded) }
        #expect(server.requests.count == 3)
        #expect(server.requests.allSatisfy { $0.values(of: "Authorization").isEmpty })
    }
}
