/// Why a server was not trusted.
package struct TransferTrustFailure: Hashable, Sendable {
    /// The check that failed.
    package enum Cause: Hashable, Sendable {
        /// The certificate chain; see ``TrustVerdict/code``.
        case chain
        /// The certificate does not name the host.
        case host
        /// ``TrustCheck`` returned false.
        case check
        /// The OCSP response is missing, or does not say that the certificate is good.
        case stapledStatus
    }

    package let cause: Cause
    /// The presented certificates; `nil` if the handshake did not get that far.
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
    /// The certificates in DER, the server's own first: the chain as far as it could be built, up to its root if the
    /// root is known, and then the other certificates that the server sent.
    package let chain: [[UInt8]]
    /// The result of the evaluation against the anchors; without anchors, what it would have been. The host name is
    /// checked later.
    package let verdict: TrustVerdict
}

/// OpenSSL's result for a certificate chain.
package struct TrustVerdict: Hashable, Sendable {
    /// `X509_V_OK` (0) or one of `X509_V_ERR_…` (`X509_verify_cert_error_string(3)`).
    package let code: Int32
    /// The position of the certificate in question: 0 is the server's own, 1 its issuer's, …
    package let depth: Int32
    /// OpenSSL's description.
    package let message: String

    package var isTrusted: Bool { code == 0 }
}
