/// The revocation checks for a server's certificate.
///
/// There are two sources: an OCSP response that the server sends during the handshake ("stapled"), and lists that the
/// program provides. Neither libcurl nor OpenSSL contacts a revocation server during a handshake. The authority that
/// runs such a server would learn which hosts the client visits, and each connection would wait for its response.
///
/// ```swift
/// let policy = ServerTrustPolicy.performRevokedEvaluation(
///     validateHost: true,
///     revocationFlags: [.stapledStatus, .lists(lists)]
/// )
/// ```
public struct RevocationFlags: Hashable, Sendable, ExpressibleByArrayLiteral {
    /// Whether the server must staple an OCSP response of its authority (RFC 6066 §8), and this response must report
    /// the server's certificate as good.
    public let requiresStapledStatus: Bool
    /// The revocation lists. An empty array requires nothing. Otherwise one of the lists must be of the certificate's
    /// issuer and valid now, and it must not contain the certificate.
    public let lists: [CertificateRevocationList]

    /// Requires a stapled OCSP response. Few servers send one. nginx, for example, needs `ssl_stapling on`.
    public static let stapledStatus = RevocationFlags(requiresStapledStatus: true, lists: [])

    /// Requires that one of these lists is the list of the certificate's issuer, and that the certificate is not on it.
    public static func lists(_ lists: [CertificateRevocationList]) -> RevocationFlags {
        RevocationFlags(requiresStapledStatus: false, lists: lists)
    }

    private init(requiresStapledStatus: Bool, lists: [CertificateRevocationList]) {
        self.requiresStapledStatus = requiresStapledStatus
        self.lists = lists
    }

    /// Combines the requirements of all elements.
    public init(arrayLiteral elements: RevocationFlags...) {
        self.init(
            requiresStapledStatus: elements.contains { $0.requiresStapledStatus },
            lists: elements.flatMap(\.lists)
        )
    }
}
