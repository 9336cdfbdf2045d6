public import NetwatchTransport

extension AFError {
    /// The reasons why a server is not trusted.
    public enum ServerTrustFailureReason: Sendable {
        /// The server's certificates and the result of their evaluation.
        public struct Output: Hashable, Sendable {
            /// The requested host.
            public let host: String
            /// OpenSSL's result for the certificate chain; `nil` if the handshake ended before the chain was evaluated.
            public let verdict: ServerTrust.Verdict?
            /// The certificate chain: the server's certificate, then its issuer's, and so on.
            public let certificates: [Certificate]
            /// The distinguished name of the issuer whose certificate is missing: the issuer of the last of
            /// ``certificates``. `nil` if OpenSSL reports a different error.
            ///
            /// If the missing certificate is an intermediate, the server should have sent it. If it is a root, this
            /// system must know it.
            public var missingIssuer: String? {
                let lacksIssuer = verdict.map { Self.lackingIssuer.contains($0.code) } ?? false
                return lacksIssuer ? certificates.last?.issuer : nil
            }

            /// OpenSSL's codes for a missing issuer: `X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT`,
            /// `X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY` and `X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE`.
            private static let lackingIssuer: Set<Int32> = [2, 20, 21]

            /// The details of the failed transfer, with libcurl's message and the phase that the transfer had reached.
            public let transferFailure: TransferFailure
        }

        // MARK: Before anything is sent

        /// The host has no policy, but ``ServerTrustPolicyManager/allHostsMustBeEvaluated`` requires one for every
        /// host.
        case noRequiredEvaluator(host: String)
        /// A key in the policies or client identities is not a host, or denotes the same host as another key.
        case invalidPolicyHost(String)
        /// The policy pins certificates but contains none.
        case noCertificatesFound
        /// The policy pins public keys but contains none.
        case noPublicKeysFound
        /// All pinned certificates have expired, so no chain with one of them is valid.
        case pinnedCertificatesExpired([Certificate])
        /// The policy checks revocation, but its ``RevocationFlags`` require neither a stapled OCSP response nor a
        /// revocation list.
        case noRevocationCheck
        /// All revocation lists of the policy have expired.
        case revocationListsExpired([CertificateRevocationList])

        // MARK: In the handshake

        /// The certificate chain did not pass the evaluation; see ``Output/verdict``.
        case defaultEvaluationFailed(output: Output)
        /// The server's certificate does not name the host.
        case hostValidationFailed(output: Output)
        /// The certificate was revoked, or its revocation status is unknown.
        case revocationCheckFailed(output: Output)
        /// None of the pinned certificates is in the server's chain.
        case certificatePinningFailed(output: Output, pinnedCertificates: [Certificate])
        /// None of the pinned public keys is in the server's chain.
        case publicKeyPinningFailed(output: Output, pinnedKeys: [PublicKey])
        /// The program's custom evaluation rejected the server.
        case customEvaluationFailed(output: Output)
    }
}

extension AFError.ServerTrustFailureReason {
    /// The server's certificates and their evaluation; `nil` if no connection was attempted.
    public var output: Output? {
        switch self {
        case .noRequiredEvaluator, .invalidPolicyHost, .noCertificatesFound, .noPublicKeysFound,
            .pinnedCertificatesExpired, .noRevocationCheck, .revocationListsExpired:
            nil
        case .defaultEvaluationFailed(let output), .hostValidationFailed(let output),
            .revocationCheckFailed(let output), .certificatePinningFailed(let output, _),
            .publicKeyPinningFailed(let output, _), .customEvaluationFailed(let output):
            output
        }
    }

    /// The details of the failed transfer.
    ///
    /// If the policy itself is the problem, no transfer was started. The code is then 77 (`CURLE_SSL_CACERT_BADFILE`),
    /// which marks an error of the program's configuration, so that the request is not retried.
    var transferFailure: TransferFailure {
        output?.transferFailure ?? TransferFailure(code: 77, phase: .prepare, message: text)
    }

    var text: String {
        switch self {
        case .noRequiredEvaluator(let host):
            "`\(host)` has no policy, but `allHostsMustBeEvaluated` requires one"
        case .invalidPolicyHost(let host):
            "the policies or client identities contain `\(host)`, which is not a valid host or occurs twice; "
                + "accepted: host names and addresses without scheme and port"
        case .noCertificatesFound: "the policy pins certificates but contains none"
        case .noPublicKeysFound: "the policy pins public keys but contains none"
        case .pinnedCertificatesExpired(let pins): "all pinned certificates have expired: \(Self.list(pins))"
        case .noRevocationCheck:
            "the revocation flags require neither a stapled OCSP response nor a revocation list; use "
                + "`.stapledStatus` or `.lists(…)`"
        case .revocationListsExpired: "all revocation lists have expired"
        case .defaultEvaluationFailed(let output): output.text(output.verdictText)
        case .hostValidationFailed(let output): output.text("its certificate does not name this host")
        case .revocationCheckFailed(let output): output.text("revocation check failed: \(output.verdictText)")
        case .certificatePinningFailed(let output, let pins):
            output.text(
                "its chain contains none of the pinned certificates: \(Self.list(pins))\(output.missingIssuerText)"
            )
        case .publicKeyPinningFailed(let output, let keys):
            output.text(
                "its chain contains none of the pinned keys: \(Self.list(keys)); the keys of the chain: "
                    + Self.list(output.certificates.map(\.publicKey))
            )
        case .customEvaluationFailed(let output): output.text("the custom evaluation rejected the server")
        }
    }

    private static func list<Element: CustomStringConvertible>(_ elements: [Element]) -> String {
        let shown = elements.prefix(4).map(\.description).joined(separator: ", ")
        return elements.count > 4 ? "\(shown), and \(elements.count - 4) more" : shown
    }
}

extension AFError.ServerTrustFailureReason.Output {
    /// Returns the host, the problem and the server's certificate:
    /// `example.com: certificate has expired (10, certificate 0); it presented CN=example.com (by …, until …)`.
    fileprivate func text(_ problem: String) -> String {
        let shown = certificates.first.map { "; it presented \($0)" } ?? ""
        return "\(host): \(problem)\(shown)"
    }

    /// A note about a missing issuer; empty if none is missing. The pinned certificate may be one that the server
    /// should have sent.
    fileprivate var missingIssuerText: String {
        missingIssuer.map { "; the certificate of the issuer `\($0)` is missing: \(verdictText)" } ?? ""
    }

    /// OpenSSL's message if OpenSSL reports a problem, otherwise libcurl's.
    fileprivate var verdictText: String {
        guard let verdict, !verdict.isTrusted else { return transferFailure.message }
        return verdict.description
    }
}
