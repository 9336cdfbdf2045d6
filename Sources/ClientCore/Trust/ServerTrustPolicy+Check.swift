internal import Foundation

extension ServerTrustPolicy {
    /// Checks that the policy can currently trust any server at all.
    ///
    /// A session makes the same check before it sends the first request under the policy. If it fails, this request
    /// and all others under the policy fail with the same error.
    ///
    /// - Throws: ``AFError/serverTrustEvaluationFailed(reason:)`` with one of these reasons:
    ///   ``AFError/ServerTrustFailureReason/noCertificatesFound`` or
    ///   ``AFError/ServerTrustFailureReason/noPublicKeysFound`` if there are no pins;
    ///   ``AFError/ServerTrustFailureReason/pinnedCertificatesExpired(_:)`` if all pinned certificates have expired
    ///   and the chain is validated; ``AFError/ServerTrustFailureReason/noRevocationCheck`` if the flags contain no
    ///   revocation check; ``AFError/ServerTrustFailureReason/revocationListsExpired(_:)`` if all lists have expired.
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
