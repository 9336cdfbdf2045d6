internal import ClientCore
internal import Foundation
internal import NetwatchTestSupport

/// A TLS server, and the certificates that a seed's policies pin.
package struct CompletionTLS: Codable, Sendable {
    /// The URL of the server: `https://127.0.0.1:PORT`.
    package var url: String
    /// The paths of two certificates: that of the authority that issued the server's certificate, and an unrelated one.
    package var authority: String
    package var unrelated: String

    package init(url: String, authority: String, unrelated: String) {
        self.url = url
        self.authority = authority
        self.unrelated = unrelated
    }

    /// Returns a session's policies for the server. The number selects the kind of policy, and whether it accepts or
    /// rejects the server.
    ///
    /// - Parameters:
    ///   - program: The program, whose code runs when a policy is looked up.
    ///   - accepts: Returns the result of a custom evaluation.
    func policies(
        _ number: UInt64,
        _ program: CompletionProgram,
        accepts: @escaping @Sendable () -> Bool
    ) throws -> ServerTrustPolicyManager {
        let policy: ServerTrustPolicy =
            switch number % 6 {
            case 0: .performDefaultEvaluation(validateHost: true)
            case 1: try pinning(unrelated)
            case 2: try pinning(authority)
            case 3: .disableEvaluation
            default: .customEvaluation { _, _ in accepts() }
            }
        return CompletionTrustManager(["127.0.0.1": policy], program)
    }

    private func pinning(_ path: String) throws -> ServerTrustPolicy {
        .pinCertificates(
            certificates: [try Certificate(contentsOf: URL(fileURLWithPath: path))],
            validateCertificateChain: true,
            validateHost: true
        )
    }
}
