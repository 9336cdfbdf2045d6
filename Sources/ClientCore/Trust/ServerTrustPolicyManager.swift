internal import Foundation

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
