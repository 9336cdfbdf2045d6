internal import ClientCore
internal import Foundation
internal import NetwatchTestSupport

/// A TLS server and those that may vouch for it.
package struct LawTLS: Codable, Sendable {
    /// `https://127.0.0.1:PORT`.
    package var url: String
    /// The paths of two certificates: of the authority that the server's is of, and of a stranger.
    package var authority: String
    package var stranger: String

    package init(url: String, authority: String, stranger: String) {
        self.url = url
        self.authority = authority
        self.stranger = stranger
    }

    /// What the server has to prove in a session: refusals by each kind of policy, and some that let it in.
    ///
    /// - Parameter accepts: The word of a custom evaluation.
    func policies(
        _ number: UInt64,
        accepts: @escaping @Sendable () -> Bool
    ) throws -> ServerTrustPolicyManager {
        let policy: ServerTrustPolicy =
            switch number % 6 {
            case 0: .performDefaultEvaluation(validateHost: true)
            case 1: try pinning(stranger)
            case 2: try pinning(authority)
            case 3: .disableEvaluation
            default: .customEvaluation { _, _ in accepts() }
            }
        return ServerTrustPolicyManager(policies: ["127.0.0.1": policy])
    }

    private func pinning(_ path: String) throws -> ServerTrustPolicy {
        .pinCertificates(
            certificates: [try Certificate(contentsOf: URL(fileURLWithPath: path))],
            validateCertificateChain: true,
            validateHost: true
        )
    }
}
