internal import Foundation
internal import NetwatchTransport

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

extension ServerTrustPolicy {
    /// Checks whether the policy can currently trust any server at all.
    ///
    /// A session makes the same check before it sends the first request under the policy. If the check fails, all
    /// requests under the policy fail with the error that this function throws.
    ///
    /// - Throws: ``AFError/serverTrustEvaluationFailed(reason:)`` with one of these reasons:
    ///   - ``AFError/ServerTrustFailureReason/noCertificatesFound``: the policy pins certificates, but contains none.
    ///   - ``AFError/ServerTrustFailureReason/noPublicKeysFound``: the policy pins public keys, but contains none.
    ///   - ``AFError/ServerTrustFailureReason/pinnedCertificatesExpired(_:)``: the chain is validated, but all pinned
    ///     certificates have expired.
    ///   - ``AFError/ServerTrustFailureReason/noRevocationCheck``: the flags contain no revocation check.
    ///   - ``AFError/ServerTrustFailureReason/revocationListsExpired(_:)``: all revocation lists have expired.
    public func check() throws {
        if let reason = defect(at: .now) { throw AFError.serverTrustEvaluationFailed(reason: reason) }
    }

    func defect(at now: Date) -> AFError.ServerTrustFailureReason? {
        switch self {
        case .performDefaultEvaluation, .disableEvaluation, .custom: nil
        case .performRevokedEvaluation(_, let flags): flags.defect(at: now)
        case .pinCertificates([], _, _): .noCertificatesFound
        case .pinCertificates(let pins, validateCertificateChain: true, _):
            pins.allSatisfy { $0.notAfter.map { $0 < now } ?? false } ? .pinnedCertificatesExpired(pins) : nil
        case .pinCertificates: nil
        case .pinPublicKeys(let keys, _, _): keys.isEmpty ? .noPublicKeysFound : nil
        }
    }
}

extension RevocationFlags {
    fileprivate func defect(at now: Date) -> AFError.ServerTrustFailureReason? {
        guard requiresList else {
            return acceptsAnyMethod || requiresStapledStatus ? nil : .noRevocationCheck
        }
        let haveExpired = lists.allSatisfy { $0.nextUpdate.map { $0 < now } ?? false }
        return haveExpired ? .revocationListsExpired(lists) : nil
    }
}

extension ServerTrustPolicy {
    /// The policy in the engine's form. Transfers share connections only if their values are equal. A value with a
    /// ``TrustCheck`` equals only its own copies, so each access to this property creates a different value.
    var transferTrust: TransferTrust {
        var trust = TransferTrust()
        switch self {
        case .performDefaultEvaluation(let validateHost):
            trust.checksHost = validateHost
        case .performRevokedEvaluation(let validateHost, let flags):
            trust.checksHost = validateHost
            trust.requiresStapledStatus = flags.requiresStapledStatus
            trust.revocationLists = flags.lists.flatMap(\.pem)
            trust.acceptsAnyRevocationSource = flags.acceptsAnyMethod
            trust.requiresRevocationList = flags.requiresList
        case .pinCertificates(let pins, validateCertificateChain: true, let validateHost):
            trust.anchors = .only(pem: pins.flatMap(\.pem))
            trust.checksHost = validateHost
        case .pinCertificates(let pins, _, _):
            trust.decideOnly(TrustCheck { Self.chain($0, hasOneOf: pins.map(\.data)) { $0.der } })
        case .pinPublicKeys(let keys, validateCertificateChain: true, let validateHost):
            trust.checksHost = validateHost
            let pins = keys.map(\.data)
            trust.check = TrustCheck {
                $0.verdict.isTrusted && Self.chain($0, hasOneOf: pins) { $0.publicKey }
            }
        case .pinPublicKeys(let keys, _, _):
            trust.decideOnly(TrustCheck { Self.chain($0, hasOneOf: keys.map(\.data)) { $0.publicKey } })
        case .disableEvaluation:
            trust.decideOnly(nil)
        case .custom(let evaluation):
            trust.decideOnly(
                TrustCheck(by: .program) { presented in
                    let trust = ServerTrust(presented)
                    return evaluation.evaluate(trust, trust.host)
                }
            )
        }
        return trust
    }

    private static func chain(
        _ presented: PresentedTrust,
        hasOneOf pins: [Data],
        _ part: (borrowing X509Certificate) -> Data?
    ) -> Bool {
        CertificateChain.linked(presented.chain).contains { part($0.x509).map(pins.contains) ?? false }
    }
}

extension TransferTrust {
    /// Lets `check` alone decide. If it is `nil`, every server is trusted.
    fileprivate mutating func decideOnly(_ check: TrustCheck?) {
        anchors = nil
        checksHost = false
        self.check = check
    }
}

extension TransferFailure {
    /// Returns the error for the request's handlers.
    ///
    /// - Parameters:
    ///   - url: The URL that failed.
    ///   - isOffline: Whether there was no path to the host. Default `nil`: the failure's `errno` decides.
    ///   - policy: The policy by which the server was evaluated. Default `nil`: the default evaluation.
    func error(
        for url: URL?,
        isOffline: Bool? = nil,
        under policy: ServerTrustPolicy? = nil
    ) -> any Error {
        if let reason = AFError.ServerTrustFailureReason(self, host: url?.host ?? "", under: policy) {
            return AFError.serverTrustEvaluationFailed(reason: reason)
        }
        return urlError(for: url, isOffline: isOffline)
    }
}

extension AFError.ServerTrustFailureReason {
    /// Converts a failure of the engine. Returns `nil` if the failure is not related to trust.
    ///
    /// - Parameters:
    ///   - failure: The failure.
    ///   - host: The URL's host, which is used if the handshake did not report the host.
    ///   - policy: The policy by which the server was evaluated; `nil` for the default evaluation.
    init?(_ failure: TransferFailure, host: String, under policy: ServerTrustPolicy?) {
        guard let cause = failure.trust?.cause ?? Self.cause(ofCode: failure.code) else { return nil }
        let output = Output(failure, host: host)
        switch cause {
        case .host: self = .hostValidationFailed(output: output)
        case .stapledStatus: self = .revocationCheckFailed(output: output)
        case .chain: self = Self.chainFailed(output, policy)
        case .check: self = Self.checkFailed(output, policy)
        }
    }

    /// Returns the cause that a code of `libcurl-errors(3)` stands for: 60 is `CURLE_PEER_FAILED_VERIFICATION`, 83 is
    /// `CURLE_SSL_ISSUER_ERROR`, 91 is `CURLE_SSL_INVALIDCERTSTATUS`. Returns `nil` for other codes.
    private static func cause(ofCode code: Int32) -> TransferTrustFailure.Cause? {
        switch code {
        case 60, 83: .chain
        case 91: .stapledStatus
        default: nil
        }
    }

    private static func chainFailed(_ output: Output, _ policy: ServerTrustPolicy?) -> Self {
        switch (output.verdict?.problem, policy) {
        case (.revoked, _), (.revocationUnknown, _): .revocationCheckFailed(output: output)
        // The signatures of the chain are valid, but the chain does not lead to a pinned certificate.
        case (.unknownIssuer, .pinCertificates(let pins, _, _)),
            (.selfSigned, .pinCertificates(let pins, _, _)):
            .certificatePinningFailed(output: output, pinnedCertificates: pins)
        default: .defaultEvaluationFailed(output: output)
        }
    }

    private static func checkFailed(_ output: Output, _ policy: ServerTrustPolicy?) -> Self {
        switch policy {
        case .pinCertificates(let pins, _, _):
            .certificatePinningFailed(output: output, pinnedCertificates: pins)
        case .pinPublicKeys(_, validateCertificateChain: true, _) where output.verdict?.isTrusted == false:
            .defaultEvaluationFailed(output: output)
        case .pinPublicKeys(let keys, _, _): .publicKeyPinningFailed(output: output, pinnedKeys: keys)
        case .performDefaultEvaluation, .performRevokedEvaluation, .disableEvaluation, .custom, nil:
            .customEvaluationFailed(output: output)
        }
    }
}

extension AFError.ServerTrustFailureReason.Output {
    fileprivate init(_ failure: TransferFailure, host: String) {
        let trust = failure.trust?.presented.map(ServerTrust.init)
        self.init(
            host: trust?.host ?? host,
            verdict: trust?.verdict,
            certificates: trust?.certificates ?? [],
            transferFailure: failure
        )
    }
}
