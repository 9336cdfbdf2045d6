/// How a TLS server must prove its identity, and the certificate with which the client identifies itself.
///
/// Transfers share connections only if their trust is equal. libcurl alone would give a pooled connection to any
/// transfer with the same options. It would not call the custom check of that transfer, which might refuse the server.
package struct TransferTrust: Hashable, Sendable {
    /// The certificates that can vouch for a server.
    package enum Anchors: Hashable, Sendable {
        /// The system's certificate authorities.
        case system
        /// Only these certificates, in PEM. They need not be roots: an intermediate certificate or the server's own is
        /// also accepted as an anchor (`X509_V_FLAG_PARTIAL_CHAIN`).
        case only(pem: [UInt8])
    }

    /// The versions of TLS.
    package enum TLSVersion: Sendable {
        case tls10, tls11, tls12, tls13
    }

    /// The oldest version of TLS that the transfer accepts, whatever OpenSSL's configuration says. Default `nil`: 1.2,
    /// because RFC 8996 deprecates older versions, or the minimum of OpenSSL's configuration if that is newer.
    package var minimumVersion: TLSVersion?
    /// The anchors to which a server's chain must lead; `nil` accepts any certificate. Default ``Anchors/system``.
    package var anchors: Anchors? = .system
    /// Whether the server's certificate must name the URL's host. Default true.
    package var checksHost = true
    /// Whether the server must staple an OCSP response (RFC 6066 §8) that says its certificate is good. Default false.
    package var requiresStapledStatus = false
    /// Certificate revocation lists in PEM. Default: none. Ignored without anchors.
    ///
    /// If there are any, one of them must be from the issuer of the server's certificate and current, and it must not
    /// contain that certificate. Otherwise the server is not trusted. With ``acceptsAnyRevocationSource``, such a list
    /// may be missing, unless ``requiresRevocationList`` is true.
    package var revocationLists: [UInt8] = []
    /// Whether one source suffices that reports the certificate as good: a stapled OCSP response, or a current list of
    /// ``revocationLists``. A source that reports anything else still refuses the server. Default false: each source
    /// that the properties above name must report the certificate as good.
    package var acceptsAnyRevocationSource = false
    /// Whether a list must report the certificate as good even if ``acceptsAnyRevocationSource`` is true. A stapled
    /// response that reports anything else then still refuses the server, but may be missing. Without any list, every
    /// server is refused. Default false. Ignored without anchors.
    package var requiresRevocationList = false
    /// A custom check, which makes the final decision after the chain was evaluated. Default `nil`: the evaluation
    /// decides.
    package var check: TrustCheck?
    /// The client's certificate and key, used if the server asks for a certificate. Default `nil`: the client sends
    /// none.
    package var identity: TransferIdentity?

    package init() {}

    /// The default trust, as browsers require it: the system's authorities and the right host name.
    package static let standard = TransferTrust()
}

extension TransferTrust {
    /// Hashes only properties that are cheap to hash. The PEM data may be megabytes, and each transfer needs the hash.
    /// Comparing equal values is cheap, because they mostly share their storage.
    package func hash(into hasher: inout Hasher) {
        if case .only(let pem) = anchors { hasher.combine(pem.count) }
        hasher.combine(anchors == nil)
        hasher.combine(minimumVersion)
        hasher.combine(checksHost)
        hasher.combine(requiresStapledStatus)
        hasher.combine(revocationLists.count)
        hasher.combine(acceptsAnyRevocationSource)
        hasher.combine(requiresRevocationList)
        hasher.combine(check)
        hasher.combine(identity?.key.count)
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
