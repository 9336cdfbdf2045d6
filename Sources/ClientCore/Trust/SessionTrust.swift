internal import Foundation
internal import NetwatchTransport
internal import Synchronization

/// What a session's manager says of a host, as the engine is told it.
final class SessionTrust: Sendable {
    /// What one hop needs.
    struct Decision: Sendable {
        let host: String
        /// `nil` for the default evaluation of a host without a policy.
        let policy: ServerTrustPolicy?
        let trust: TransferTrust
    }

    /// Equal ones have to give an equal ``TransferTrust``, or their transfers would share no connections.
    private struct Key: Hashable {
        let policy: ServerTrustPolicy?
        let identity: ClientIdentity?
    }

    /// More than that a program has only when it makes evaluations anew for each request. Its connections are not
    /// shared then, but memory is not lost.
    private static let cacheLimit = 64

    /// It does not change, and a subclass is told that it is asked from several threads.
    nonisolated(unsafe) private let manager: ServerTrustPolicyManager?
    /// A host that no request can be judged by.
    private let invalidHost: String?
    private let cache = Mutex<[Key: TransferTrust]>([:])

    /// Whether policies come from what the program has written.
    let asksProgram: Bool

    init(_ manager: ServerTrustPolicyManager?) {
        self.manager = manager
        asksProgram = manager.map { type(of: $0) != ServerTrustPolicyManager.self } ?? false
        // What other keys mean only a subclass knows.
        invalidHost = asksProgram ? nil : manager?.invalidHost
    }

    /// - Returns: `nil` for a hop without TLS, and when no manager was given: the default evaluation.
    /// - Throws: ``AFError/serverTrustEvaluationFailed(reason:)`` for a host that is not to be asked at all.
    func decision(for url: URL?) throws -> Decision? {
        guard let manager, let url, url.scheme?.lowercased() == "https" else { return nil }
        let host: String
        do {
            host = try TransferRequest.host(of: url.absoluteString)
        } catch {
            throw error.error(for: url)
        }
        if let invalidHost { throw Self.failure(.invalidPolicyHost(invalidHost)) }
        let name = TrustHost.normalized(host) ?? host
        let policy = manager.serverTrustPolicy(forHost: name)
        if policy == nil, manager.allHostsMustBeEvaluated {
            throw Self.failure(.noRequiredEvaluator(host: name))
        }
        let key = Key(policy: policy, identity: manager.clientIdentity(forHost: name))
        return Decision(host: name, policy: policy, trust: try trust(for: key))
    }

    /// Whether the server of an `https` URL has to prove that it is the URL's host. A check of the program's own counts.
    func validatesServer(of url: URL?) -> Bool {
        guard let policy = (try? decision(for: url))?.policy else { return true }
        switch policy {
        case .disableEvaluation: return false
        case .performDefaultEvaluation(let validateHost), .performRevokedEvaluation(let validateHost, _):
            return validateHost
        case .pinCertificates, .pinPublicKeys, .custom: return true
        }
    }

    private func trust(for key: Key) throws -> TransferTrust {
        if let known = cache.withLock({ $0[key] }) { return known }
        try key.policy?.check()
        var trust = key.policy?.transferTrust ?? .standard
        trust.identity = key.identity?.transfer
        return cache.withLock { cache in
            // Another request may have been faster.
            if let known = cache[key] { return known }
            if cache.count == Self.cacheLimit { cache.removeAll() }
            cache[key] = trust
            return trust
        }
    }

    /// How many are kept.
    var rememberedCount: Int { cache.withLock { $0.count } }

    private static func failure(_ reason: AFError.ServerTrustFailureReason) -> AFError {
        .serverTrustEvaluationFailed(reason: reason)
    }
}
