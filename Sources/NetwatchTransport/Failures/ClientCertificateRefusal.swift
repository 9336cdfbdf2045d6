/// Why a server refused the client's certificate, according to its TLS alert (RFC 8446 §6.2).
package enum ClientCertificateRefusal: Hashable, Sendable {
    /// The server requires a certificate, and the client sent none.
    case required
    /// The server does not accept the certificate that the client sent.
    case rejected
}

extension TransferFailure {
    /// Why the server refused the client's certificate; `nil` if the transfer failed for another reason. The server has
    /// not processed the request.
    ///
    /// libcurl has no code for this and keeps only OpenSSL's message for the alert. In TLS 1.3 the client's handshake
    /// is already complete: the alert arrives instead of the response, as a receive failure (56) or a send failure
    /// (55).
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
