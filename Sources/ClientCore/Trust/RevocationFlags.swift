/// How it is found out whether a server's certificate was revoked.
///
/// Neither libcurl nor OpenSSL asks an authority's server during a handshake: that would tell it who visits whom,
/// and make each connection wait for it. What is left is what the server brings and what the program has:
///
/// ```swift
/// let policy = ServerTrustPolicy.performRevokedEvaluation(
///     validateHost: true,
///     revocationFlags: [.stapledStatus, .lists(lists)]
/// )
/// ```
public struct RevocationFlags: Hashable, Sendable, ExpressibleByArrayLiteral {
    /// Whether the server has to staple an answer of its authority (OCSP, RFC 6066 §8) that calls its certificate
    /// good.
    public let requiresStapledStatus: Bool
    /// Lists of revoked certificates. If there are any, the issuer of the server's certificate needs one that is
    /// valid now, and the certificate must not be on it.
    public let lists: [CertificateRevocationList]

    /// The server has to staple its authority's answer. Few do: nginx needs `ssl_stapling on`.
    public static let stapledStatus = RevocationFlags(requiresStapledStatus: true, lists: [])

    /// The certificate must not be on its issuer's list, which is one of these.
    public static func lists(_ lists: [CertificateRevocationList]) -> RevocationFlags {
        RevocationFlags(requiresStapledStatus: false, lists: lists)
    }

    private init(requiresStapledStatus: Bool, lists: [CertificateRevocationList]) {
        self.requiresStapledStatus = requiresStapledStatus
        self.lists = lists
    }

    /// Asks for all that any of these asks for.
    public init(arrayLiteral elements: RevocationFlags...) {
        self.init(
            requiresStapledStatus: elements.contains { $0.requiresStapledStatus },
            lists: elements.flatMap(\.lists)
        )
    }
}
