internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTransport

/// An object that provides the trust policy and the client identity for each host.
///
/// A session calls its manager before each `https` request that it sends, including those after redirects. The calls
/// come from the queues of the requests, so from several threads at once. A subclass can look hosts up differently, for
/// example to support wildcards. It must synchronize its mutable state.
///
/// ```swift
/// class CustomServerTrustPolicyManager: ServerTrustPolicyManager {
///     override func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
///         host.hasSuffix(".example.com") ? policies["*.example.com"] : super.serverTrustPolicy(forHost: host)
///     }
/// }
/// ```
// Not `Sendable`, because every subclass would have to repeat the conformance. Those in Alamofire's guides do not.
open class ServerTrustPolicyManager {
    /// The policies by host, as passed to the initializer.
    public let policies: [String: ServerTrustPolicy]
    /// The client identities by host, as passed to the initializer.
    public let clientIdentities: [String: ClientIdentity]
    /// Whether requests to hosts without a policy fail.
    public let allHostsMustBeEvaluated: Bool

    private let policiesByHost: [String: ServerTrustPolicy]
    private let identitiesByHost: [String: ClientIdentity]

    /// Creates a manager.
    ///
    /// The keys of both dictionaries are hosts: names or addresses, without scheme and port. Case, the brackets of an
    /// IPv6 address and a dot at the end of a name are ignored. ``check()`` reports a key that is not a host.
    ///
    /// - Parameters:
    ///   - policies: The trust policies by host.
    ///   - clientIdentities: The client identities by host. An identity is used when its host asks for a certificate.
    ///     Default: none.
    ///   - allHostsMustBeEvaluated: Whether requests to hosts without a policy fail with
    ///     ``AFError/ServerTrustFailureReason/noRequiredEvaluator(host:)``. If false, these hosts are evaluated by
    ///     default. Default: false, as in Alamofire 4. In Alamofire 5 the default is true.
    public init(
        policies: [String: ServerTrustPolicy],
        clientIdentities: [String: ClientIdentity] = [:],
        allHostsMustBeEvaluated: Bool = false
    ) {
        self.policies = policies
        self.clientIdentities = clientIdentities
        self.allHostsMustBeEvaluated = allHostsMustBeEvaluated
        policiesByHost = Self.byHost(policies)
        identitiesByHost = Self.byHost(clientIdentities)
    }

    /// Returns the policy of a host; `nil` for the default evaluation. This implementation looks the host up in
    /// ``policies``.
    ///
    /// - Parameter host: A lowercase name without a trailing dot, or an address without brackets.
    open func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
        TrustHost.normalized(host).flatMap { policiesByHost[$0] }
    }

    /// Returns the client identity for a host; `nil` for none. This implementation looks the host up in
    /// ``clientIdentities``.
    ///
    /// - Parameter host: A lowercase name without a trailing dot, or an address without brackets.
    open func clientIdentity(forHost host: String) -> ClientIdentity? {
        TrustHost.normalized(host).flatMap { identitiesByHost[$0] }
    }

    /// Checks all hosts and policies, so that a program can detect errors at startup.
    ///
    /// A session makes the same checks before it sends a request. It rejects requests to a host whose policy is
    /// invalid, and all `https` requests if a key is not a host. A session does not check the keys of a subclass,
    /// because only the subclass knows their meaning.
    ///
    /// - Throws: ``AFError/serverTrustEvaluationFailed(reason:)`` with
    ///   ``AFError/ServerTrustFailureReason/invalidPolicyHost(_:)``, or an error of ``ServerTrustPolicy/check()``.
    public func check() throws {
        if let host = invalidHost {
            throw AFError.serverTrustEvaluationFailed(reason: .invalidPolicyHost(host))
        }
        for (_, policy) in policies.sorted(by: { $0.key < $1.key }) { try policy.check() }
    }

    /// A key that is not a host, or that denotes the same host as another key; `nil` if all keys are valid. Ignoring
    /// such a key would leave an unknown host without the policy that the program intended.
    var invalidHost: String? {
        Self.invalidHost(of: policies.keys) ?? Self.invalidHost(of: clientIdentities.keys)
    }

    private static func invalidHost(of hosts: some Collection<String>) -> String? {
        var known: Set<String> = []
        return hosts.sorted().first { host in
            guard let normalized = TrustHost.normalized(host) else { return true }
            return !known.insert(normalized).inserted
        }
    }

    private static func byHost<Value>(_ values: [String: Value]) -> [String: Value] {
        let known = values.compactMap { host, value in TrustHost.normalized(host).map { ($0, value) } }
        return Dictionary(known) { first, _ in first }
    }
}

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
