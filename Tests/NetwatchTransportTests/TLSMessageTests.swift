internal import Testing

@testable internal import NetwatchTransport

/// The words for the errors of the TLS library.
@Suite struct TLSMessageTests {
    @Test(arguments: [
        (
            "OpenSSL/3.0.19: error:0A00010B:SSL routines::wrong version number",
            "the server does not speak TLS on this port (wrong version number)"
        ),
        (
            "error:0A000086:SSL routines::certificate verify failed",
            "the server's certificate is not trusted (certificate verify failed)"
        ),
        (
            "OpenSSL SSL_read: error:0A00045C:SSL routines::tlsv13 alert certificate required, errno 0",
            "the server refused the TLS connection (tlsv13 alert certificate required)"
        ),
        (
            "OpenSSL SSL_connect: error:0A000152:SSL routines:f:unsafe legacy renegotiation disabled",
            "the TLS connection failed (unsafe legacy renegotiation disabled)"
        ),
        (
            "SSL certificate problem: self-signed certificate",
            "SSL certificate problem: self-signed certificate"
        ),
        ("error: something else", "error: something else"),
    ])
    func `an error of OpenSSL is described in words`(message: String, words: String) {
        #expect(TLSMessage.inWords(message) == words)
    }
}
