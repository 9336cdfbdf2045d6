/// The requirements for a server before a request is sent to it, with Alamofire 4's cases.
///
/// Requests under equal policies share connections.
public enum ServerTrustPolicy: Hashable, Sendable {
    /// An authority of this system has issued the server's certificate. If `validateHost` is true, the certificate
    /// must name the host. Hosts without a policy are evaluated in this way, with `validateHost` true.
    case performDefaultEvaluation(validateHost: Bool)

    /// The same as the default evaluation, and the server's certificate must not be revoked.
    case performRevokedEvaluation(validateHost: Bool, revocationFlags: RevocationFlags)

    /// One of these certificates must be in the server's chain.
    ///
    /// With `validateCertificateChain`, only these certificates are trusted as anchors: roots, intermediates or the
    /// server's own. The chain up to one of them is evaluated as usual. Without it, the certificates of the chain are
    /// only compared with these; neither the host nor the validity period is checked.
    case pinCertificates(certificates: [Certificate], validateCertificateChain: Bool, validateHost: Bool)

    /// One of these keys must be in the server's chain.
    ///
    /// With `validateCertificateChain`, the chain must also pass the default evaluation. Without it, the keys of the
    /// chain are only compared with these; neither the host nor the validity period is checked.
    case pinPublicKeys(publicKeys: [PublicKey], validateCertificateChain: Bool, validateHost: Bool)

    /// Every server is trusted. An attacker on the network path can then read and modify all traffic.
    case disableEvaluation

    /// A closure of the program decides; see ``customEvaluation(_:)``.
    case custom(CustomEvaluation)

    /// Returns a policy in which a closure of the program decides.
    ///
    /// The closure is called in every TLS handshake, on the thread that drives all transfers of the process, and must
    /// not block. The policy equals only itself: reuse it rather than creating one for each request.
    ///
    /// - Parameter evaluation: Returns whether the server is trusted. ``ServerTrust/isTrustedByDefault`` is the
    ///   result without any policy.
    @preconcurrency
    public static func customEvaluation(
        _ evaluation: @escaping CustomEvaluation.Evaluate
    ) -> ServerTrustPolicy {
        .custom(CustomEvaluation(evaluation))
    }
}
