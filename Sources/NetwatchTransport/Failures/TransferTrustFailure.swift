/// The reason why a server was not trusted, and the certificates that it presented.
package struct TransferTrustFailure: Hashable, Sendable {
    /// The check that failed.
    package enum Cause: Hashable, Sendable {
        /// The certificate chain is not valid. ``TrustVerdict/code`` has the reason.
        case chain
        /// The certificate does not name the host.
        case host
        /// The custom check (``TrustCheck``) refused the certificates.
        case check
        /// The server stapled no OCSP response, or one that does not say that its certificate is good.
        case stapledStatus
    }

    package let cause: Cause
    /// The certificates that the server presented; `nil` if the handshake ended before the server presented any.
    package let presented: PresentedTrust?

    package init(cause: Cause, presented: PresentedTrust?) {
        self.cause = cause
        self.presented = presented
    }
}

/// The certificates that a server presents in a handshake, and their evaluation.
package struct PresentedTrust: Hashable, Sendable {
    /// The URL's host, without brackets.
    package let host: String
    /// The certificates in DER. First comes the chain, as far as OpenSSL could build it: the server's own certificate,
    /// then each issuer, up to the root if it is known. The other certificates that the server sent follow.
    package let chain: [[UInt8]]
    /// The result of evaluating the chain against the accepted anchors. If the trust accepts any certificate
    /// (``TransferTrust/anchors`` is `nil`), the result has no effect. It does not cover the host name, which is
    /// checked later.
    package let verdict: TrustVerdict
}

/// OpenSSL's result for a certificate chain.
package struct TrustVerdict: Hashable, Sendable {
    /// The result code: `X509_V_OK` (0) or one of `X509_V_ERR_…` (`X509_verify_cert_error_string(3)`).
    package let code: Int32
    /// The position in the chain of the certificate to which ``code`` applies: 0 is the server's own, 1 its issuer's,
    /// and so on.
    package let depth: Int32
    /// OpenSSL's description.
    package let message: String

    package var isTrusted: Bool { code == 0 }
}
