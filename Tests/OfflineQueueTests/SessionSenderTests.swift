internal import ClientCore
internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import OfflineQueue

/// What the queue makes of the ends of a session's requests.
@Suite struct SessionSenderTests {
    @Test(arguments: [
        (
            "OpenSSL SSL_read: error:0A00045C:SSL routines::tlsv13 alert certificate required, errno 0",
            CInt(58)
        ),
        ("OpenSSL SSL_read: error:0A000418:SSL routines::tlsv1 alert unknown ca, errno 0", 58),
        ("Recv failure: Connection reset by peer", 56),
    ])
    func `a client certificate that is missing or refused is no lost connection`(message: String, code: CInt)
    {
        let failure = TransferFailure(code: 56, phase: .response, message: message)
        #expect(AttemptFailure(nil, failure, status: nil).code == code)
        // It has answered, so it has taken the certificate.
        #expect(AttemptFailure(nil, failure, status: 200).code == 56)
    }

    /// Anybody on the way can send one.
    @Test func `an alert during the handshake is one of the path`() {
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
    func `what this machine was short of is told from what the network lacked`(
        failure: TransferFailure,
        isLocal: Bool
    ) {
        #expect(AttemptFailure(nil, failure, status: nil).isLocalShortage == isLocal)
    }

    @Test(.timeLimit(.minutes(1)))
    func `an attempt is concluded by its status although the body does not end`() async throws {
        let head = "HTTP/1.1 200 OK\r\nX-A: b\r\n\r\n"
        let server = try ScriptedServer { _ in .send(head, then: .drip([0x78])) }
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

    @Test func `a session that trusts every server proves nothing`() {
        let policies: [String: ServerTrustPolicy] = [
            "any.example": .disableEvaluation, "name.example": .performDefaultEvaluation(validateHost: false),
            "strict.example": .performDefaultEvaluation(validateHost: true),
        ]
        let manager = ServerTrustPolicyManager(policies: policies)
        let sender = SessionSender(session: SessionManager(serverTrustPolicyManager: manager))
        let hosts = ["any", "name", "strict", "other"]
        #expect(hosts.filter { sender.validatesServer(of: "https://\($0).example/") } == ["strict", "other"])
    }
}
