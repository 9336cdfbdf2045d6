/// What a TLS server has to prove, and the identity of the client.
///
/// libcurl gives a pooled connection to any transfer with the same options, whatever the callback of an earlier
/// transfer decided about the server. So transfers share connections only if their trust is equal.
package struct TransferTrust: Hashable, Sendable {
    /// The certificates that can vouch for a server.
    package enum Anchors: Hashable, Sendable {
        /// The system's certificate authorities.
        case system
        /// Only these certificates, in PEM. A server's own certificate or an intermediate certificate is also accepted
        /// as an anchor (`X509_V_FLAG_PARTIAL_CHAIN`).
        case only(pem: [UInt8])
    }

    /// The accepted anchors; `nil` accepts any certificate. Default: the system's.
    package var anchors: Anchors? = .system
    /// Whether the server's certificate must name the URL's host. Default true.
    package var checksHost = true
    /// Whether the server must staple an OCSP response (RFC 6066 §8) that says its certificate is good. Default false.
    package var requiresStapledStatus = false
    /// Certificate revocation lists in PEM. If there are any, the issuer of the server's certificate must have one, and
    /// the certificate must not be on it. Default none. Ignored without anchors.
    package var revocationLists: [UInt8] = []
    /// Makes the final decision after the chain was evaluated. Default `nil`: the evaluation decides.
    package var check: TrustCheck?
    /// The client's certificate, sent if the server asks for one. Default `nil`: none.
    package var identity: TransferIdentity?

    package init() {}

    /// The trust that browsers require.
    package static let standard = TransferTrust()
}

extension TransferTrust {
    /// Hashes cheap distinguishing properties only. The PEM data may be megabytes, and the hash is needed for each
    /// transfer. Equal values mostly share their storage, so comparing them is cheap.
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

/// A custom check of a server's certificates. It is equal only to itself, because closures cannot be compared.
package final class TrustCheck: Hashable, Sendable {
    /// Returns whether the server is accepted. Called on the engine's thread in every handshake; must not block it.
    package let evaluate: @Sendable (PresentedTrust) -> Bool

    package init(_ evaluate: @escaping @Sendable (PresentedTrust) -> Bool) {
        self.evaluate = evaluate
    }

    package static func == (one: TrustCheck, other: TrustCheck) -> Bool { one === other }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}

/// A client's certificate and its key.
package struct TransferIdentity: Hashable, Sendable {
    /// The client's certificate, followed by the intermediate certificates, in PEM.
    package let certificates: [UInt8]
    /// The private key in PEM, unencrypted.
    package let key: [UInt8]

    package init(certificates: [UInt8], key: [UInt8]) {
        self.certificates = certificates
        self.key = key
    }
}
