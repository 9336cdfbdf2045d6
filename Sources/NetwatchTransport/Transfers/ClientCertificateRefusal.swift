/// What a server says of the client's certificate, in an alert of TLS (RFC 8446 §6.2).
package enum ClientCertificateRefusal: Hashable, Sendable {
    /// It wants one, and there is none.
    case required
    /// It does not take the one that it was shown.
    case rejected
}

extension TransferFailure {
    /// How the server refused the client's certificate, if that is how the transfer failed. Such a server has not
    /// looked at the request.
    ///
    /// libcurl has no code for it, and keeps OpenSSL's words of the alert only. In TLS 1.3 the client's handshake is
    /// over by then: the alert comes in place of the response, as a failure to receive (56) or to send (55).
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
