/// What a TLS server has to prove, and who the client proves to be.
///
/// libcurl hands a pooled connection to any transfer with the same options, whatever a callback of an earlier one
/// had said about the server. So transfers share connections only when their trust is equal.
package struct TransferTrust: Hashable, Sendable {
    /// Who may vouch for a server.
    package enum Anchors: Hashable, Sendable {
        /// The authorities that this system knows.
        case system
        /// These certificates and no others, in PEM. A server's own certificate, or one between it and its root,
        /// is an anchor like any other (`X509_V_FLAG_PARTIAL_CHAIN`).
        case only(pem: [UInt8])
    }

    /// Who vouches for the server; `nil` for nobody, whatever it shows being accepted. Default: the system's.
    package var anchors: Anchors? = .system
    /// Whether the server's certificate has to name the URL's host. Default true.
    package var checksHost = true
    /// Whether the server has to staple an OCSP response (RFC 6066 §8) that calls its certificate good. Default
    /// false.
    package var requiresStapledStatus = false
    /// Lists of revoked certificates in PEM; when there are any, the issuer of the server's certificate needs one,
    /// on which it is not. Default none. Without anchors they count for nothing.
    package var revocationLists: [UInt8] = []
    /// Has the last word, after the chain was evaluated. Default `nil`: the evaluation stands.
    package var check: TrustCheck?
    /// Who the client says that it is, when the server asks. Default `nil`: nobody.
    package var identity: TransferIdentity?

    package init() {}

    /// What browsers do.
    package static let standard = TransferTrust()
}

extension TransferTrust {
    /// By what tells trusts apart without reading their files, which may be megabytes and are looked up for each
    /// transfer. Equal ones mostly share their storage, so that comparing them is cheap.
    package func hash(into hasher: inout Hasher) {
        if case .only(let pem) = anchors { hasher.combine(pem.count) }
        hasher.combine(anchors == nil)
        hasher.combine(checksHost)
        hasher.combine(requiresStapledStatus)
        hasher.combine(revocationLists.count)
        hasher.combine(check)
        hasher.combine(identity?.key.count)
    }
}

/// A judgement of what a server shows. It is equal to itself only, for nobody can tell whether two closures are.
package final class TrustCheck: Hashable, Sendable {
    /// Whether the server is accepted. Called on the engine's thread in every handshake, which it must not block.
    package let evaluate: @Sendable (PresentedTrust) -> Bool

    package init(_ evaluate: @escaping @Sendable (PresentedTrust) -> Bool) {
        self.evaluate = evaluate
    }

    package static func == (one: TrustCheck, other: TrustCheck) -> Bool { one === other }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}

/// What a server shows in a handshake.
package struct PresentedTrust: Hashable, Sendable {
    /// The URL's host, without brackets.
    package let host: String
    /// Certificates in DER, the server's own first: the chain as far as it could be built, up to its root if that
    /// is known, and then what else the server has sent.
    package let chain: [[UInt8]]
    /// What the evaluation against the anchors came to; with none, what it would have come to. The host's name is
    /// looked at later.
    package let verdict: TrustVerdict
}

/// What OpenSSL says of a chain of certificates.
package struct TrustVerdict: Hashable, Sendable {
    /// `X509_V_OK` (0) or one of `X509_V_ERR_…` (`X509_verify_cert_error_string(3)`).
    package let code: Int32
    /// Which certificate it is about: 0 is the server's own, 1 its issuer's, …
    package let depth: Int32
    /// OpenSSL's words.
    package let message: String

    package var isTrusted: Bool { code == 0 }
}

/// A client's certificate and its key.
package struct TransferIdentity: Hashable, Sendable {
    /// The certificate and those between it and its root, in PEM, its own first.
    package let certificates: [UInt8]
    /// The private key in PEM, not encrypted.
    package let key: [UInt8]

    package init(certificates: [UInt8], key: [UInt8]) {
        self.certificates = certificates
        self.key = key
    }
}

/// Why a server was not trusted.
package struct TransferTrustFailure: Hashable, Sendable {
    /// What was found wrong.
    package enum Cause: Hashable, Sendable {
        /// The chain of certificates; see ``TrustVerdict/code``.
        case chain
        /// The certificate is another host's.
        case host
        /// ``TrustCheck`` said no.
        case check
        /// The OCSP response is missing, or does not call the certificate good.
        case stapledStatus
    }

    package let cause: Cause
    /// `nil` when the handshake did not come that far.
    package let presented: PresentedTrust?

    package init(cause: Cause, presented: PresentedTrust?) {
        self.cause = cause
        self.presented = presented
    }
}
