internal import Foundation
internal import NetwatchTransport
internal import Synchronization

/// The decisions of a session's ``ServerTrustPolicyManager``, in the engine's form.
final class SessionTrust: Sendable {
    /// The trust settings of one hop.
    struct Decision: Sendable {
        let host: String
        /// `nil` if the host has no policy and is evaluated by default.
        let policy: ServerTrustPolicy?
        let trust: TransferTrust
    }

    /// Equal keys must map to an equal ``TransferTrust``; otherwise their transfers would not share connections.
    private struct Key: Hashable {
        let policy: ServerTrustPolicy?
        let identity: ClientIdentity?
    }

    /// Only a program that creates custom evaluations for each request exceeds this limit. Its requests do not share
    /// connections then, but memory does not grow.
    private static let cacheLimit = 64

    /// The base class is immutable, and subclasses are documented to be called from several threads.
    nonisolated(unsafe) private let manager: ServerTrustPolicyManager?
    /// A key of the manager that is not a valid host. If there is one, all `https` requests are rejected.
    private let invalidHost: String?
    private let cache = Mutex<[Key: TransferTrust]>([:])

    /// Whether the manager is a subclass, whose methods are the program's code.
    let runsUserCode: Bool

    init(_ manager: ServerTrustPolicyManager?) {
        self.manager = manager
        runsUserCode = manager.map { type(of: $0) != ServerTrustPolicyManager.self } ?? false
        // Only a subclass knows the meaning of keys that are not hosts.
        invalidHost = runsUserCode ? nil : manager?.invalidHost
    }

    /// - Returns: `nil` for a hop without TLS, and without a manager: the default evaluation.
    /// - Throws: ``AFError/serverTrustEvaluationFailed(reason:)`` if the request must not be sent.
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

    /// Returns whether the server of an `https` URL must prove that it is the URL's host. Pins and custom evaluations
    /// count as such a proof.
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
            // Another request may have added it in the meantime.
            if let known = cache[key] { return known }
            if cache.count == Self.cacheLimit { cache.removeAll() }
            cache[key] = trust
            return trust
        }
    }

    /// The number of cached values.
    var cachedCount: Int { cache.withLock { $0.count } }

    private static func failure(_ reason: AFError.ServerTrustFailureReason) -> AFError {
        .serverTrustEvaluationFailed(reason: reason)
    }
}
