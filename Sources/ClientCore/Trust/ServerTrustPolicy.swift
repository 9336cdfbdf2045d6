/// What a server must prove before a request is sent to it. The cases are those of Alamofire 4.
///
/// Requests under equal policies share connections.
///
/// ```swift
/// let policies: [String: ServerTrustPolicy] = [
///     "api.example.com": .pinPublicKeys(
///         publicKeys: [try Certificate(contentsOf: certificateURL).publicKey],
///         validateCertificateChain: true,
///         validateHost: true
///     )
/// ]
/// let session = SessionManager(serverTrustPolicyManager: ServerTrustPolicyManager(policies: policies))
/// ```
public enum ServerTrustPolicy: Hashable, Sendable {
    /// A certificate authority that this system trusts must have issued the server's certificate. If `validateHost` is
    /// true, the certificate must also name the host. Hosts without a policy are evaluated in this way, with
    /// `validateHost` true.
    case performDefaultEvaluation(validateHost: Bool)

    /// The server must pass the default evaluation, and its certificate must not be revoked.
    case performRevokedEvaluation(validateHost: Bool, revocationFlags: RevocationFlags)

    /// One of the pinned certificates must be in the server's chain.
    ///
    /// If `validateCertificateChain` is true, only the pinned certificates are trusted as anchors, instead of the
    /// system's authorities. They may be roots, intermediates or the server's own certificate. The chain is validated
    /// up to one of them, including validity periods and, with `validateHost`, the host.
    ///
    /// If it is false, only this is checked: whether the chain contains a pinned certificate. Neither the host nor the
    /// validity period is checked.
    case pinCertificates(certificates: [Certificate], validateCertificateChain: Bool, validateHost: Bool)

    /// One of the pinned keys must be in the server's chain.
    ///
    /// If `validateCertificateChain` is true, the chain must also pass the default evaluation. If it is false, only
    /// this is checked: whether the chain contains a pinned key. Neither the host nor the validity period is checked.
    case pinPublicKeys(publicKeys: [PublicKey], validateCertificateChain: Bool, validateHost: Bool)

    /// Every server is trusted. An attacker on the network path can then read and modify all traffic.
    case disableEvaluation

    /// A closure of the program decides whether the server is trusted; see ``customEvaluation(_:)``.
    case custom(CustomEvaluation)

    /// Returns a policy in which a closure of the program decides.
    ///
    /// The closure is called on a separate thread, and may block; see ``CustomEvaluation/Evaluate`` for its limits. The
    /// policy equals only itself, and only requests under equal policies share connections. Therefore reuse the policy
    /// rather than creating one for each request.
    ///
    /// - Parameter evaluation: Returns whether the server is trusted. The result of the default evaluation is available
    ///   as ``ServerTrust/isTrustedByDefault``.
    @preconcurrency
    public static func customEvaluation(
        _ evaluation: @escaping CustomEvaluation.Evaluate
    ) -> ServerTrustPolicy {
        .custom(CustomEvaluation(evaluation))
    }
}
