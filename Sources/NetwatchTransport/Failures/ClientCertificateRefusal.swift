/// The reason why a server refused the client's certificate, as stated by its TLS alert (RFC 8446 §6.2).
package enum ClientCertificateRefusal: Hashable, Sendable {
    /// The server requires a certificate, and the client sent none.
    case required
    /// The server does not accept the certificate that the client sent.
    case rejected
}

extension TransferFailure {
    /// The reason why the server refused the client's certificate; `nil` if the transfer failed for another reason.
    ///
    /// After such a refusal the server has not processed the request.
    ///
    /// libcurl has no code for a refused certificate. Only the failure's message identifies it: the message contains
    /// OpenSSL's text for the TLS alert. In TLS 1.3 the alert arrives after the client has completed its handshake, in
    /// place of the response. libcurl then reports a failure to receive (56) or to send (55).
    package var clientCertificateRefusal: ClientCertificateRefusal? {
        // CURLE_SSL_CONNECT_ERROR, CURLE_SEND_ERROR and CURLE_RECV_ERROR.
        guard [35, 55, 56].contains(code) else { return nil }
        if message.contains("alert certificate required") { return .required }
        return Self.rejections.contains { message.contains("alert \($0)") } ? .rejected : nil
    }

    private static let rejections = [
        "bad certificate", "unsupported certificate", "certificate revoked", "certificate expired",
        "certificate unknown", "unknown ca", "access denied",
    ]
}
