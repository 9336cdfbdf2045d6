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
}
