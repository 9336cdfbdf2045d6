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
    /// The revocation lists. A list of the certificate's issuer that contains the certificate refuses the server.
    public let lists: [CertificateRevocationList]
    /// Whether one of ``lists`` must be of the certificate's issuer and valid now, and must not contain the certificate.
    public let requiresList: Bool
    /// Whether one method suffices that reports the certificate as good, a stapled response or one of ``lists``, and a
    /// stapled response that reports anything else refuses the server. Requirements of ``requiresStapledStatus`` and
    /// ``requiresList`` apply in addition.
    public let acceptsAnyMethod: Bool

    /// Requires a stapled OCSP response. Few servers send one. nginx, for example, needs `ssl_stapling on`.
    public static let stapledStatus = RevocationFlags(requiresStapledStatus: true)

    /// Requires that one of these lists is the list of the certificate's issuer, and that the certificate is not on it.
    public static func lists(_ lists: [CertificateRevocationList]) -> RevocationFlags {
        RevocationFlags(lists: lists, requiresList: !lists.isEmpty)
    }

    /// Requires that a stapled OCSP response or one of these lists reports the certificate as good, and that neither
    /// reports anything else. An expired list does not report a certificate as good, but still refuses the certificates
    /// on it.
    ///
    /// A server for which neither is available is refused. `kSecRevocationUseAnyAvailableMethod` of Apple's Security
    /// framework would ask the authority's servers, and accept the certificate if they do not respond.
    ///
    /// - Parameter lists: The revocation lists. Default: none, so that a stapled response is required.
    public static func anyAvailableMethod(_ lists: [CertificateRevocationList] = []) -> RevocationFlags {
        RevocationFlags(lists: lists, acceptsAnyMethod: true)
    }

    private init(
        requiresStapledStatus: Bool = false,
        lists: [CertificateRevocationList] = [],
        requiresList: Bool = false,
        acceptsAnyMethod: Bool = false
    ) {
        self.requiresStapledStatus = requiresStapledStatus
        self.lists = lists
        self.requiresList = requiresList
        self.acceptsAnyMethod = acceptsAnyMethod
    }

    /// Combines the requirements of all elements.
    public init(arrayLiteral elements: RevocationFlags...) {
        self.init(
            requiresStapledStatus: elements.contains { $0.requiresStapledStatus },
            lists: elements.flatMap(\.lists),
            requiresList: elements.contains { $0.requiresList },
            acceptsAnyMethod: elements.contains { $0.acceptsAnyMethod }
        )
    }
}
