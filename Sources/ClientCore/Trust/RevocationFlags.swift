/// The revocation checks for a server's certificate.
///
/// Neither libcurl nor OpenSSL contacts a revocation server during a handshake: the authority would learn which hosts
/// the client visits, and each connection would wait for it. Two sources remain: a status that the server sends, and
/// lists that the program provides.
///
/// ```swift
/// let policy = ServerTrustPolicy.performRevokedEvaluation(
///     validateHost: true,
///     revocationFlags: [.stapledStatus, .lists(lists)]
/// )
/// ```
public struct RevocationFlags: Hashable, Sendable, ExpressibleByArrayLiteral {
    /// Whether the server must staple an OCSP response of its authority (RFC 6066 §8) that reports its certificate as
    /// good.
    public let requiresStapledStatus: Bool
    /// Revocation lists. Unless empty, they must contain a list of the certificate's issuer that is valid now, and
    /// the certificate must not be on it.
    public let lists: [CertificateRevocationList]

    /// Requires a stapled OCSP response. Few servers send one: nginx needs `ssl_stapling on`.
    public static let stapledStatus = RevocationFlags(requiresStapledStatus: true, lists: [])

    /// Requires that the certificate is not on its issuer's list, which must be one of these.
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
