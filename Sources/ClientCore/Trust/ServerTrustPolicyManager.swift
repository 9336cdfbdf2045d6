internal import Foundation

/// Which host has to prove what, and to whom the client shows who it is.
///
/// A session asks it for every `https` hop, so for each redirect too, on the queue of the request. A subclass may
/// answer in its own way, for wildcards for example:
///
/// ```swift
/// class CustomServerTrustPolicyManager: ServerTrustPolicyManager, @unchecked Sendable {
///     override func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
///         host.hasSuffix(".example.com") ? policies["*.example.com"] : super.serverTrustPolicy(forHost: host)
///     }
/// }
/// ```
// What is stored here does not change, hence `@unchecked`, which a class that others may derive from has to say. A
// subclass answers for what it stores.
open class ServerTrustPolicyManager: @unchecked Sendable {
    /// The policies by their hosts, as they were given.
    public let policies: [String: ServerTrustPolicy]
    /// The identities by the hosts that may see them, as they were given.
    public let clientIdentities: [String: ClientIdentity]
    /// Whether a host without a policy is refused.
    public let allHostsMustBeEvaluated: Bool

    private let policiesByHost: [String: ServerTrustPolicy]
    private let identitiesByHost: [String: ClientIdentity]

    /// Makes a manager.
    ///
    /// Hosts are names or addresses without scheme and port; neither letter case, nor the brackets of an IPv6
    /// address, nor a dot at the end of a name make a difference. ``check()`` tells which are none.
    ///
    /// - Parameters:
    ///   - policies: What each host has to prove.
    ///   - clientIdentities: Who the client says that it is when that host asks. Default: nobody anywhere.
    ///   - allHostsMustBeEvaluated: Whether a host without a policy is refused, with
    ///     ``AFError/ServerTrustFailureReason/noRequiredEvaluator(host:)``, in place of getting the default evaluation.
    ///     Default false, as in Alamofire 4; 5's default is true.
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

    /// What a host has to prove; `nil` for the default evaluation. The default looks the host up in ``policies``.
    ///
    /// - Parameter host: A name in small letters, without a dot at its end, or an address without brackets.
    open func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
        TrustHost.normalized(host).flatMap { policiesByHost[$0] }
    }

    /// Who the client says that it is when a host asks; `nil` for nobody. The default looks the host up in
    /// ``clientIdentities``.
    ///
    /// - Parameter host: A name in small letters, without a dot at its end, or an address without brackets.
    open func clientIdentity(forHost host: String) -> ClientIdentity? {
        TrustHost.normalized(host).flatMap { identitiesByHost[$0] }
    }

    /// Checks all hosts and policies, for a program that wants to know at once.
    ///
    /// A session with this manager, but not with one of a subclass, refuses every request that this refuses for its
    /// host, or for being unable to tell which host was meant.
    ///
    /// - Throws: ``AFError/serverTrustEvaluationFailed(reason:)`` with
    ///   ``AFError/ServerTrustFailureReason/invalidPolicyHost(_:)``, or what ``ServerTrustPolicy/check()`` throws.
    public func check() throws {
        if let host = invalidHost {
            throw AFError.serverTrustEvaluationFailed(reason: .invalidPolicyHost(host))
        }
        for (_, policy) in policies.sorted(by: { $0.key < $1.key }) { try policy.check() }
    }

    /// A key that can never match, or matches what another one does: whom its policy is for nobody can tell, so that
    /// leaving it out would leave a host unguarded.
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
