internal import Foundation

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
