internal import Foundation

extension ServerTrustPolicy {
    /// Checks that there are servers that it could trust, now.
    ///
    /// A session does so too before it sends the first request under the policy, and fails that and all others with
    /// the same error.
    ///
    /// - Throws: ``AFError/serverTrustEvaluationFailed(reason:)`` with
    ///   ``AFError/ServerTrustFailureReason/noCertificatesFound`` or
    ///   ``AFError/ServerTrustFailureReason/noPublicKeysFound`` for no pins;
    ///   ``AFError/ServerTrustFailureReason/pinnedCertificatesExpired(_:)`` if all of them have and the chain is
    ///   evaluated; ``AFError/ServerTrustFailureReason/noRevocationCheck`` if nothing would tell of a revocation;
    ///   ``AFError/ServerTrustFailureReason/revocationListsExpired(_:)`` if all lists have.
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
        if lists.isEmpty { return requiresStapledStatus ? nil : .noRevocationCheck }
        let haveExpired = lists.allSatisfy { $0.nextUpdate.map { $0 < now } ?? false }
        return haveExpired ? .revocationListsExpired(lists) : nil
    }
}
