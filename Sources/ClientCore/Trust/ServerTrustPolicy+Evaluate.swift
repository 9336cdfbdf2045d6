internal import Foundation

extension ServerTrustPolicy {
    /// Evaluates a server's certificates by this policy. Use it in a custom evaluation that combines several policies
    /// or adds requirements.
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
    /// Sessions do not need it: they evaluate their policies in the handshake. It can be called on any thread and
    /// verifies some signatures.
    ///
    /// - Parameters:
    ///   - serverTrust: The server's certificates. The result for the system's authorities is its
    ///     ``ServerTrust/verdict``, from the time of the handshake. Pins and lists are evaluated now.
    ///   - host: The expected host of the server.
    /// - Returns: Whether the server is trusted. Always false for a policy that ``check()`` rejects, and for one with
    ///   ``RevocationFlags/requiresStapledStatus``, because a ``ServerTrust`` does not contain the stapled response.
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
    /// Returns whether the first certificate of a validated chain is not revoked according to these flags.
    fileprivate func clear(_ chain: [Certificate]) -> Bool {
        !requiresStapledStatus
            && ChainEvaluation.isValid(chain, anchors: Array(chain.dropFirst()), lists: lists)
    }
}
