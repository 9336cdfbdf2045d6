/// What a server has to prove before it gets a request, with Alamofire 4's cases.
///
/// Two equal policies share connections.
public enum ServerTrustPolicy: Hashable, Sendable {
    /// An authority that this system knows vouches for the server, and for the host if `validateHost` is true. That
    /// is what hosts without a policy get, with `validateHost` true.
    case performDefaultEvaluation(validateHost: Bool)

    /// The same, and the server's certificate was not revoked.
    case performRevokedEvaluation(validateHost: Bool, revocationFlags: RevocationFlags)

    /// One of these certificates is in the server's chain.
    ///
    /// With `validateCertificateChain` they are the only ones that may vouch for it, roots, intermediates or its own,
    /// and the chain up to one of them is evaluated as ever. Without, one of them is compared with each of the
    /// chain, and nothing else is looked at: neither the host nor the time.
    case pinCertificates(certificates: [Certificate], validateCertificateChain: Bool, validateHost: Bool)

    /// One of these keys is in the server's chain.
    ///
    /// With `validateCertificateChain` the chain has to pass the default evaluation too. Without, one of them is
    /// compared with each of the chain, and nothing else is looked at: neither the host nor the time.
    case pinPublicKeys(publicKeys: [PublicKey], validateCertificateChain: Bool, validateHost: Bool)

    /// Every server is trusted. Anybody on the way may be the server then, read all and change all.
    case disableEvaluation

    /// The program decides, by itself; see ``customEvaluation(_:)``.
    case custom(CustomEvaluation)

    /// The program decides, by itself.
    ///
    /// The closure runs on the thread that carries all transfers of the process, in every TLS handshake, and must
    /// not block. The policy is equal to itself only: keep it rather than make one for each request.
    ///
    /// - Parameter evaluation: Says whether the server is trusted. ``ServerTrust/isTrustedByDefault`` says whether it
    ///   would be without any policy.
    @preconcurrency
    public static func customEvaluation(
        _ evaluation: @escaping CustomEvaluation.Evaluate
    ) -> ServerTrustPolicy {
        .custom(CustomEvaluation(evaluation))
    }
}
