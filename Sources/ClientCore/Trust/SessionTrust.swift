internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTransport

/// The decisions of a session's ``ServerTrustPolicyManager``, in the engine's form.
final class SessionTrust: Sendable {
    /// The trust settings of one hop.
    struct Decision: Sendable {
        let host: String
        /// The policy of the host; `nil` for the default evaluation.
        let policy: ServerTrustPolicy?
        let trust: TransferTrust
    }

    /// What determines the ``TransferTrust`` of a host. Hosts with equal keys get the same cached value, so that their
    /// transfers can share connections.
    private struct Key: Hashable {
        let policy: ServerTrustPolicy?
        let identity: ClientIdentity?
    }

    /// The ``TransferTrust`` of each key. A value without I/O.
    private struct Cache {
        /// The maximum number of values. With more, the one that was not used for the longest time is evicted. The
        /// servers that its custom evaluation has accepted, and the limits of its calls, are then forgotten.
        ///
        /// The limit keeps the memory of a program that creates a custom evaluation for each request from growing.
        static let limit = 64

        private var entries: [Key: (trust: TransferTrust, lastUse: UInt64)] = [:]
        private var useCount: UInt64 = 0

        var count: Int { entries.count }

        mutating func value(for key: Key) -> TransferTrust? {
            useCount += 1
            entries[key]?.lastUse = useCount
            return entries[key]?.trust
        }

        mutating func insert(_ trust: TransferTrust, for key: Key) {
            useCount += 1
            entries[key] = (trust, useCount)
            guard entries.count > Self.limit else { return }
            let oldest = entries.min { $0.value.lastUse < $1.value.lastUse }
            if let oldest { entries[oldest.key] = nil }
        }
    }

    /// `nonisolated(unsafe)` is safe: the base class is immutable, and its documentation requires that subclasses
    /// synchronize their state.
    nonisolated(unsafe) private let manager: ServerTrustPolicyManager?
    /// A key of the manager that is not a valid host; `nil` if all are valid. An invalid key makes all `https` requests
    /// fail.
    private let invalidHost: String?
    private let cache = Lock(Cache())

    /// Whether the manager is a subclass, whose methods are the program's code.
    let runsUserCode: Bool

    init(_ manager: ServerTrustPolicyManager?) {
        self.manager = manager
        runsUserCode = manager.map { type(of: $0) != ServerTrustPolicyManager.self } ?? false
        // A subclass may give a meaning to keys that are not hosts, for example to wildcards.
        invalidHost = runsUserCode ? nil : manager?.invalidHost
    }

    /// Returns the trust settings for a URL.
    ///
    /// - Returns: `nil` if the URL is not `https` or the session has no manager. The default evaluation then applies.
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

    /// Returns whether the server of an `https` URL must prove that it is the URL's host. A pin and a custom evaluation
    /// count as proof.
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
        if let known = cache.withLock({ $0.value(for: key) }) { return known }
        try key.policy?.check()
        var trust = key.policy?.transferTrust ?? .standard
        trust.identity = key.identity?.transfer
        return cache.withLock { cache in
            // Another thread may have added the value in the meantime.
            if let known = cache.value(for: key) { return known }
            cache.insert(trust, for: key)
            return trust
        }
    }

    /// The number of cached values. For tests.
    var cachedCount: Int { cache.withLock { $0.count } }

    private static func failure(_ reason: AFError.ServerTrustFailureReason) -> AFError {
        .serverTrustEvaluationFailed(reason: reason)
    }
}
