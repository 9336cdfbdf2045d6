internal import Foundation
internal import NetwatchTransport

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
