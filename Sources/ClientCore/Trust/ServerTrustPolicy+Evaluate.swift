internal import Foundation

extension ServerTrustPolicy {
    /// Evaluates a server's certificates by this policy. Use this function in a custom evaluation that combines several
    /// policies or adds requirements.
    ///
    /// ```swift
    /// let pins = ServerTrustPolicy.pinCertificates(
    ///     certificates: certificates, validateCertificateChain: true, validateHost: true
    /// )
    /// let policy = ServerTrustPolicy.customEvaluation { trust, host in
    ///     pins.evaluate(trust, forHost: host) || host.hasSuffix(".test.example") && trust.isTrustedByDefault
    /// }
    /// ```
    ///
    /// Other programs do not need this function, because a session evaluates its policies during the handshake. It can
    /// be called on any thread. It may verify signatures, which takes processor time.
    ///
    /// - Parameters:
    ///   - serverTrust: The server's certificates, with the result of the default evaluation at the time of the
    ///     handshake (``ServerTrust/verdict``). This function uses that result, and evaluates pins and revocation lists
    ///     itself.
    ///   - host: The expected host of the server.
    /// - Returns: Whether the server is trusted. Always false in two cases:
    ///   - The policy is one that ``check()`` rejects.
    ///   - The policy needs a stapled response, which a ``ServerTrust`` does not contain: it has
    ///     ``RevocationFlags/requiresStapledStatus``, or ``RevocationFlags/acceptsAnyMethod`` without a current list of
    ///     the certificate's issuer.
    public func evaluate(_ serverTrust: ServerTrust, forHost host: String) -> Bool {
        guard defect(at: .now) == nil else { return false }
        let host = TrustHost.normalized(host) ?? host
        let chain = serverTrust.certificates
        switch self {
        case .disableEvaluation: return true
        case .custom(let evaluation): return evaluation.evaluate(serverTrust, host)
        case .pinCertificates(let pins, validateCertificateChain: false, _):
            return chain.contains(where: pins.contains)
        case .pinPublicKeys(let keys, validateCertificateChain: false, _):
            return serverTrust.publicKeys.contains(where: keys.contains)
        case .performDefaultEvaluation(let checksHost):
            return serverTrust.isTrusted(host, checksHost)
        case .performRevokedEvaluation(let checksHost, let flags):
            return serverTrust.isTrusted(host, checksHost) && flags.clear(chain)
        case .pinCertificates(let pins, _, let checksHost):
            return serverTrust.names(host, checksHost) && ChainEvaluation.isValid(chain, anchors: pins)
        case .pinPublicKeys(let keys, _, let checksHost):
            return serverTrust.isTrusted(host, checksHost)
                && serverTrust.publicKeys.contains(where: keys.contains)
        }
    }
}

extension ServerTrust {
    fileprivate func isTrusted(_ host: String, _ checksHost: Bool) -> Bool {
        verdict.isTrusted && names(host, checksHost)
    }

    fileprivate func names(_ host: String, _ checksHost: Bool) -> Bool {
        !checksHost || certificateNames(host)
    }
}

extension RevocationFlags {
    /// Returns whether these flags accept the server's certificate, which is the first of a validated chain.
    fileprivate func clear(_ chain: [Certificate]) -> Bool {
        !requiresStapledStatus && !(acceptsAnyMethod && lists.isEmpty)
            && ChainEvaluation.isValid(chain, anchors: Array(chain.dropFirst()), lists: lists)
    }
}
