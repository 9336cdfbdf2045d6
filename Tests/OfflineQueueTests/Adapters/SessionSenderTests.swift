internal import ClientCore
internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import OfflineQueue

/// The outcomes that `SessionSender` derives from the results of a session's requests.
@Suite struct SessionSenderTests {
    @Test(arguments: [
        (
            "OpenSSL SSL_read: error:0A00045C:SSL routines::tlsv13 alert certificate required, errno 0",
            CInt(58)
        ),
        ("OpenSSL SSL_read: error:0A000418:SSL routines::tlsv1 alert unknown ca, errno 0", 58),
        ("Recv failure: Connection reset by peer", 56),
    ])
    func `a missing or refused client certificate is not reported as a lost connection`(
        message: String,
        code: CInt
    ) {
        let failure = TransferFailure(code: 56, phase: .response, message: message)
        #expect(AttemptFailure(nil, failure, status: nil).code == code)
        // The server has responded, so it accepted the certificate.
        #expect(AttemptFailure(nil, failure, status: 200).code == 56)
    }

    /// Any device on the path can send such an alert, so it does not count as an error of the configuration.
    @Test func `a TLS alert during the handshake counts as a path failure`() {
        let message = "OpenSSL/3.0.15: error:0A000419:SSL routines::tlsv1 alert access denied"
        let failure = TransferFailure(code: 35, phase: .tls, message: message)
        #expect(AttemptFailure(nil, failure, status: nil).code == 35)
    }

    @Test(arguments: [
        (TransferFailure(code: 7, osErrno: EMFILE, phase: .connect, message: "m"), true),
        (TransferFailure(code: 6, resolverCode: EAI_MEMORY, phase: .resolve, message: "m"), true),
        (TransferFailure(code: 28, phase: .prepare, message: "m"), true),
        (TransferFailure(code: 28, phase: .resolve, message: "m"), false),
        (TransferFailure(code: 7, osErrno: ECONNREFUSED, phase: .connect, message: "m"), false),
        (TransferFailure(code: 55, osErrno: ENOBUFS, phase: .request, bytesSent: 1, message: "m"), false),
    ])
    func `a local shortage is distinguished from a network failure`(
        failure: TransferFailure,
        isLocal: Bool
    ) {
        #expect(AttemptFailure(nil, failure, status: nil).isLocalShortage == isLocal)
    }

    @Test(.timeLimit(.minutes(5)))
    func `an attempt is concluded by its status although the body does not end`() async throws {
        // The first byte of the body arrives with the head, so that the body timeout cannot expire before it.
        let beginning = "HTTP/1.1 200 OK\r\nX-A: b\r\n\r\nx"
        let server = try ScriptedServer { _ in .send(beginning, then: .drip([0x78])) }
        let sender = SessionSender(session: SessionManager(), bodyTimeout: .milliseconds(100))
        let attempt = Attempt(
            id: "a",
            method: "GET",
            url: server.url,
            headers: [],
            body: .none,
            mayBeSentTwice: true
        )
        guard case .response(let status, let headers, let body, let isTruncated) = await sender.send(attempt)
        else {
            return #expect(Bool(false), "no response")
        }
        #expect(status == 200 && !body.isEmpty && isTruncated)
        #expect(headers.contains { $0 == ("X-A", "b") })
    }

    private func outcome(
        of url: String,
        method: String = "POST",
        session: SessionManager = SessionManager(),
        mayBeSentTwice: Bool = false,
        timeouts: AttemptTimeouts = AttemptTimeouts()
    ) async -> AttemptOutcome {
        await SessionSender(session: session).send(
            Attempt(
                id: "a",
                method: method,
                url: url,
                headers: [],
                body: method == "POST" ? .data(Data("x".utf8)) : .none,
                mayBeSentTwice: mayBeSentTwice,
                timeouts: timeouts
            )
        )
    }

    @Test(arguments: [(true, false, true), (true, true, false), (false, false, false)])
    func `a misdirected request and one that must not be sent twice use no pooled connection`(
        mayBeSentTwice: Bool,
        isMisdirected: Bool,
        reuses: Bool
    ) {
        let attempt = Attempt(
            id: "a",
            method: "GET",
            url: "https://a.example/",
            headers: [],
            body: .none,
            mayBeSentTwice: mayBeSentTwice,
            isMisdirected: isMisdirected
        )
        #expect(TransferPolicy(of: attempt, bodyTimeout: .seconds(1)).allowsConnectionReuse == reuses)
    }

    /// libcurl 7.88.1 does not report that the server refused a stream. It only tries to send the request again.
    @Test(
        .timeLimit(.minutes(5)),
        .enabled(if: TestAuthority.isAvailable, "needs openssl"),
        arguments: [("refused", true), ("goaway-open", true), ("reset", false)]
    )
    func `an unprocessed stream counts as unsent, and a reset stream does not`(
        harm: String,
        isUnprocessed: Bool
    ) async throws {
        let server = try HostileHTTP2Server(harm)
        let manager = ServerTrustPolicyManager(policies: ["127.0.0.1": .disableEvaluation])
        let session = SessionManager(serverTrustPolicyManager: manager)
        guard case .failure(let failure) = await outcome(of: server.url, session: session) else {
            return #expect(Bool(false), "no failure")
        }
        #expect(failure.isUnprocessed == isUnprocessed, "\(failure)")
        let once = AttemptContext(
            origin: try Origin(url: server.url),
            mayBeSentTwice: false,
            hasKey: false,
            gateIsDown: false,
            accept: nil
        )
        let verdict = FailureTable.classify(.failure(failure), of: once, now: start).verdict
        #expect(verdict == (isUnprocessed ? .retry(countsAsAttempt: true) : .held(.ambiguous)))
    }

    @Test(
        .timeLimit(.minutes(5)),
        .enabled(if: TestAuthority.isAvailable, "needs openssl"),
        arguments: [false, true]
    )
    func `a server that requires HTTP/1.1 gets the request over it`(mayBeSentTwice: Bool) async throws {
        let server = try HostileHTTP2Server("http-1.1")
        let manager = ServerTrustPolicyManager(policies: ["127.0.0.1": .disableEvaluation])
        let session = SessionManager(serverTrustPolicyManager: manager)
        let outcome = await outcome(of: server.url, session: session, mayBeSentTwice: mayBeSentTwice)
        guard case .response(let status, _, _, _) = outcome else { return #expect(Bool(false), "\(outcome)") }
        #expect(status == 200)
    }

    @Test(
        .timeLimit(.minutes(5)),
        .enabled(if: TestAuthority.isAvailable, "needs openssl"),
        arguments: [false, true]
    )
    func `after a response that is not valid in HTTP/2, the next attempt uses HTTP/1.1`(
        mayBeSentTwice: Bool
    ) async throws {
        let server = try HostileHTTP2Server("http-1.1-upgrade")
        let manager = ServerTrustPolicyManager(policies: ["127.0.0.1": .disableEvaluation])
        let session = SessionManager(serverTrustPolicyManager: manager)
        let first = await outcome(
            of: server.url,
            method: "GET",
            session: session,
            mayBeSentTwice: mayBeSentTwice
        )
        let context = AttemptContext(
            origin: try Origin(url: server.url),
            mayBeSentTwice: mayBeSentTwice,
            hasKey: false,
            gateIsDown: false,
            accept: nil
        )
        let classification = FailureTable.classify(first, of: context, now: start)
        #expect(
            classification.verdict == (mayBeSentTwice ? .retry(countsAsAttempt: true) : .held(.ambiguous))
        )
        #expect(classification.detail?.hasPrefix("the server violates HTTP/2") == true, "\(classification)")
        let second = await outcome(
            of: server.url,
            method: "GET",
            session: session,
            mayBeSentTwice: mayBeSentTwice
        )
        guard case .response(200, _, _, _) = second else { return #expect(Bool(false), "\(second)") }
    }

    static let strangeAnswers: [(bytes: [UInt8], words: String)] = [
        (Array("SSH-2.0-OpenSSH_9.2p1\r\n".utf8), #""SSH-2.0-OpenSSH_9.2p1\r\n""#),
        (Array("220 mail.example ESMTP\r\n".utf8), #""220 mail.example ESMTP\r\n""#),
        ([21, 3, 1, 0, 2, 2, 40], #""\x15\x03\x01\x00\x02\x02(""#),
        (Array("<html>".utf8), #""<html>""#),
        (Array("HTTP/3.9 200 OK\r\n\r\n".utf8), "Unsupported HTTP version (3.9) in response"),
        (Array("HTTP/1.1 2x0 OK\r\n\r\n".utf8), "Unsupported response code in HTTP response"),
        ([UInt8](repeating: 0x78, count: 200_000), String(repeating: "x", count: 64) + "\"…"),
        (Array("HTTP/1.1 200 OK\r\nno colon\r\n\r\n".utf8), "Header without colon"),
        (Array("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n".utf8), "without being asked"),
    ]

    @Test(arguments: strangeAnswers.indices, ["GET", "POST"])
    func `a response that is not HTTP is ambiguous, closes the lane and is quoted in the error`(
        index: Int,
        method: String
    ) async throws {
        let (bytes, words) = Self.strangeAnswers[index]
        let server = try ScriptedServer { _ in .send(bytes, then: .close) }
        guard case .failure(let failure) = await outcome(of: server.url, method: method) else {
            return #expect(Bool(false), "no failure")
        }
        #expect(failure.code == 8 && FailureTable.classify(failure) == .ambiguous, "\(failure)")
        #expect(failure.message.contains(words), "\(failure.message)")
    }

    @Test(.timeLimit(.minutes(5)))
    func `the response timeout counts from the last byte of the request, and the error names the timeout`()
        async throws
    {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        var timeouts = AttemptTimeouts()
        timeouts.response = .milliseconds(100)
        guard case .failure(let late) = await outcome(of: server.url, timeouts: timeouts) else {
            return #expect(Bool(false), "no failure")
        }
        #expect(late.code == 28 && late.phase == .response && late.overrun == .milliseconds(100), "\(late)")
        timeouts.response = .seconds(300)
        // The request must have been sent before the timeout, even on a busy machine.
        timeouts.total = .seconds(10)
        guard case .failure(let cut) = await outcome(of: server.url, timeouts: timeouts) else {
            return #expect(Bool(false), "no failure")
        }
        #expect(cut.code == 28 && cut.overrun == .seconds(10), "\(cut)")
    }

    @Test(.timeLimit(.minutes(5)))
    func `a connect timeout is not an attempt that the server may have executed`() async throws {
        let port = try UnansweringPort()
        var timeouts = AttemptTimeouts()
        timeouts.connect = .milliseconds(100)
        let outcome = await outcome(of: "http://127.0.0.1:\(port.port)/", timeouts: timeouts)
        guard case .failure(let failure) = outcome else { return #expect(Bool(false), "no failure") }
        #expect(failure.code == 28 && failure.phase < .request && failure.overrun == nil, "\(failure)")
    }

    @Test func `a session that trusts every server does not validate servers`() {
        let policies: [String: ServerTrustPolicy] = [
            "any.example": .disableEvaluation, "name.example": .performDefaultEvaluation(validateHost: false),
            "strict.example": .performDefaultEvaluation(validateHost: true),
        ]
        let manager = ServerTrustPolicyManager(policies: policies)
        let sender = SessionSender(session: SessionManager(serverTrustPolicyManager: manager))
        let hosts = ["any", "name", "strict", "other"]
        #expect(hosts.filter { sender.validatesServer(of: "https://\($0).example/") } == ["strict", "other"])
    }

    @Test func `a transfer that is cancelled before it begins is retried`() async throws {
        let sender = SessionSender(session: SessionManager())
        let attempt = Attempt(
            id: "a",
            method: "POST",
            url: "http://127.0.0.1:9/",
            headers: [],
            body: .none,
            mayBeSentTwice: true
        )
        var context = AttemptContext(
            origin: Origin(scheme: "http", host: "127.0.0.1", port: 9),
            mayBeSentTwice: true,
            hasKey: true,
            gateIsDown: false,
            accept: nil
        )
        // An attempt that is not cancelled in time is refused, and must not count either.
        context.pathHasChanged = true
        // The cancellation may reach an attempt at any point, so many attempts are needed.
        for _ in 0..<200 {
            let outcome = await Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return await sender.send(attempt)
            }.value
            let classification = FailureTable.classify(outcome, of: context, now: start)
            #expect(classification.verdict == .retry(countsAsAttempt: false))
        }
    }
}
