public import NetwatchTransport

extension AFError {
    /// Why the server was not trusted.
    public enum ServerTrustFailureReason: Sendable {
        /// What a server showed, and what was said of it.
        public struct Output: Hashable, Sendable {
            /// The host that was asked for.
            public let host: String
            /// What OpenSSL says of the chain of certificates; `nil` when the handshake did not come that far.
            public let verdict: ServerTrust.Verdict?
            /// The server's certificate, the one whose key has signed it, and so on.
            public let certificates: [Certificate]
            /// Whose certificate was missing to go on with the chain, when that is what OpenSSL says: the issuer of
            /// the last of ``certificates``. The server should have sent it, unless it is a root, which has to be known
            /// here.
            public var missingIssuer: String? {
                let lacksIssuer = verdict.map { Self.lackingIssuer.contains($0.code) } ?? false
                return lacksIssuer ? certificates.last?.issuer : nil
            }

            /// X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, …_LOCALLY, and X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE.
            private static let lackingIssuer: Set<Int32> = [2, 20, 21]

            /// libcurl's words, and how far the transfer came.
            public let transferFailure: TransferFailure
        }

        // MARK: Before anything is sent

        /// The host has no policy, and all hosts must have one
        /// (``ServerTrustPolicyManager/allHostsMustBeEvaluated``).
        case noRequiredEvaluator(host: String)
        /// A policy is for what is no host, or for one that another policy is for too.
        case invalidPolicyHost(String)
        /// Certificates are pinned, but none are given.
        case noCertificatesFound
        /// Keys are pinned, but none are given.
        case noPublicKeysFound
        /// All of the pinned certificates have expired, so that no chain that has one is valid.
        case pinnedCertificatesExpired([Certificate])
        /// Revocation is to be looked at, but there is neither a list nor a stapled answer to look at.
        case noRevocationCheck
        /// All of the lists of revoked certificates have expired, so that they vouch for nothing.
        case revocationListsExpired([CertificateRevocationList])

        // MARK: In the handshake

        /// The chain of certificates did not pass the evaluation; see ``Output/verdict``.
        case defaultEvaluationFailed(output: Output)
        /// The server's certificate is another host's.
        case hostValidationFailed(output: Output)
        /// The certificate was revoked, or nothing says that it was not.
        case revocationCheckFailed(output: Output)
        /// None of the pinned certificates is in the server's chain.
        case certificatePinningFailed(output: Output, pinnedCertificates: [Certificate])
        /// None of the pinned keys is in the server's chain.
        case publicKeyPinningFailed(output: Output, pinnedKeys: [PublicKey])
        /// The program's own evaluation said no.
        case customEvaluationFailed(output: Output)
    }
}

extension AFError.ServerTrustFailureReason {
    /// What the server showed; `nil` when it was not asked.
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

    /// How the transfer failed. One that was not begun has failed for what this program was set up with
    /// (`CURLE_SSL_CACERT_BADFILE`), so that nothing but another set-up helps.
    var transferFailure: TransferFailure {
        output?.transferFailure ?? TransferFailure(code: 77, phase: .prepare, message: text)
    }

    var text: String {
        switch self {
        case .noRequiredEvaluator(let host): "`\(host)` has no policy, and all hosts must have one"
        case .invalidPolicyHost(let host):
            "`\(host)`, which has a policy or a client identity, is no host, or is there twice; "
                + "names and addresses without scheme and port are accepted"
        case .noCertificatesFound: "certificates are pinned, but none are given"
        case .noPublicKeysFound: "public keys are pinned, but none are given"
        case .pinnedCertificatesExpired(let pins): "all pinned certificates have expired: \(Self.list(pins))"
        case .noRevocationCheck: "revocation is to be looked at, but no flag says how"
        case .revocationListsExpired: "all lists of revoked certificates have expired"
        case .defaultEvaluationFailed(let output): output.text(output.verdictText)
        case .hostValidationFailed(let output): output.text("its certificate is another host's")
        case .revocationCheckFailed(let output): output.text("revocation: \(output.verdictText)")
        case .certificatePinningFailed(let output, let pins):
            output.text(
                "none of the pinned certificates is in its chain: \(Self.list(pins))\(output.missingIssuerText)"
            )
        case .publicKeyPinningFailed(let output, let keys):
            output.text(
                "none of the pinned keys is in its chain: \(Self.list(keys)); it has "
                    + Self.list(output.certificates.map(\.publicKey))
            )
        case .customEvaluationFailed(let output): output.text("the program's own evaluation refused it")
        }
    }

    private static func list<Element: CustomStringConvertible>(_ elements: [Element]) -> String {
        let shown = elements.prefix(4).map(\.description).joined(separator: ", ")
        return elements.count > 4 ? "\(shown), and \(elements.count - 4) more" : shown
    }
}

extension AFError.ServerTrustFailureReason.Output {
    /// `example.com: certificate has expired (10, certificate 0); it shows CN=example.com (by …, until …)`.
    fileprivate func text(_ problem: String) -> String {
        let shown = certificates.first.map { "; it shows \($0)" } ?? ""
        return "\(host): \(problem)\(shown)"
    }

    /// A chain that ends before it has come to a pin may be one that the server has not sent all of.
    fileprivate var missingIssuerText: String {
        missingIssuer.map { "; its chain ends for want of `\($0)`: \(verdictText)" } ?? ""
    }

    /// OpenSSL's words if it has any to say against the server, else libcurl's.
    fileprivate var verdictText: String {
        guard let verdict, !verdict.isTrusted else { return transferFailure.message }
        return verdict.description
    }
}
