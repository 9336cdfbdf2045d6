internal import Foundation

extension ServerTrustPolicy {
    /// Evaluates what a server has shown, for a custom evaluation that wants what this policy wants and something
    /// more, or either of two.
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
    /// A session does not need it: it has its policies evaluated in the handshake. May be called on any thread; takes
    /// some signatures' time.
    ///
    /// - Parameters:
    ///   - serverTrust: What the server has shown. Its ``ServerTrust/verdict`` stands for the system's authorities, as
    ///     of the handshake; pins and lists are evaluated now.
    ///   - host: The host that the server has to be.
    /// - Returns: Whether the server is trusted. Never by a policy that ``check()`` refuses, nor by one that wants
    ///   ``RevocationFlags/requiresStapledStatus``: what a server has stapled is not in a ``ServerTrust``.
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
            return serverTrust.isVouchedFor(host, checksHost)
        case .performRevokedEvaluation(let checksHost, let flags):
            return serverTrust.isVouchedFor(host, checksHost) && flags.clear(chain)
        case .pinCertificates(let pins, _, let checksHost):
            return serverTrust.names(host, checksHost) && ChainEvaluation.isValid(chain, anchors: pins)
        case .pinPublicKeys(let keys, _, let checksHost):
            return serverTrust.isVouchedFor(host, checksHost)
                && serverTrust.publicKeys.contains(where: keys.contains)
        }
    }
}

extension ServerTrust {
    fileprivate func isVouchedFor(_ host: String, _ checksHost: Bool) -> Bool {
        verdict.isTrusted && names(host, checksHost)
    }

    fileprivate func names(_ host: String, _ checksHost: Bool) -> Bool {
        !checksHost || certificateNames(host)
    }
}

extension RevocationFlags {
    /// Whether they say of the first of a chain that was evaluated that it was not revoked.
    fileprivate func clear(_ chain: [Certificate]) -> Bool {
        !requiresStapledStatus
            && ChainEvaluation.isValid(chain, anchors: Array(chain.dropFirst()), lists: lists)
    }
}
