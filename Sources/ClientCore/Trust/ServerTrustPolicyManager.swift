internal import Foundation

/// Provides the trust policy and the client identity for each host.
///
/// A session calls it for every `https` hop, including redirects, on the request's queue: from several threads at
/// once. A subclass can look hosts up differently, for example to support wildcards. It must synchronize its mutable
/// state.
///
/// ```swift
/// class CustomServerTrustPolicyManager: ServerTrustPolicyManager {
///     override func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
///         host.hasSuffix(".example.com") ? policies["*.example.com"] : super.serverTrustPolicy(forHost: host)
///     }
/// }
/// ```
// Not `Sendable`: otherwise every subclass in Alamofire's guides would have to repeat the conformance.
open class ServerTrustPolicyManager {
    /// The policies by host, as passed to the initializer.
    public let policies: [String: ServerTrustPolicy]
    /// The client identities by host, as passed to the initializer.
    public let clientIdentities: [String: ClientIdentity]
    /// Whether hosts without a policy are rejected.
    public let allHostsMustBeEvaluated: Bool

    private let policiesByHost: [String: ServerTrustPolicy]
    private let identitiesByHost: [String: ClientIdentity]

    /// Creates a manager.
    ///
    /// Hosts are names or addresses without scheme and port. Letter case, the brackets of an IPv6 address and a dot
    /// at the end of a name are ignored. ``check()`` reports keys that are not hosts.
    ///
    /// - Parameters:
    ///   - policies: The trust policies by host.
    ///   - clientIdentities: The client identities by host, used when that host asks for a certificate. Default:
    ///     none.
    ///   - allHostsMustBeEvaluated: Whether hosts without a policy are rejected with
    ///     ``AFError/ServerTrustFailureReason/noRequiredEvaluator(host:)`` rather than evaluated by default. Default
    ///     false, as in Alamofire 4; in Alamofire 5 the default is true.
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
    /// A session makes the same checks for each request: it rejects requests to a host whose policy fails, and all
    /// `https` requests if a key is not a host. For a subclass, keys are not checked.
    ///
    /// - Throws: ``AFError/serverTrustEvaluationFailed(reason:)`` with
    ///   ``AFError/ServerTrustFailureReason/invalidPolicyHost(_:)``, or an error of ``ServerTrustPolicy/check()``.
    public func check() throws {
        if let host = invalidHost {
            throw AFError.serverTrustEvaluationFailed(reason: .invalidPolicyHost(host))
        }
        for (_, policy) in policies.sorted(by: { $0.key < $1.key }) { try policy.check() }
    }

    /// A key that is not a host, or that denotes the same host as another key. Its intended host is unknown, so
    /// ignoring the key would leave a host without its policy.
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
