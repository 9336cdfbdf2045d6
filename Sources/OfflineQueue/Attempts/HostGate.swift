/// Reports when hosts become reachable. An adapter implements it with the path monitor.
package protocol HostGate: Sendable {
    /// Returns the host's states. Only the newest one is buffered, and the first follows soon. The stream ends when its
    /// consumer's task ends.
    ///
    /// - Parameter host: A name or an address; IPv6 without brackets.
    func watch(host: String) -> AsyncStream<GateState>

    /// Returns the current state of a watched host, by new lookups. `nil` if it cannot be queried; then the last state
    /// of ``watch(host:)`` applies.
    func state(of host: String) async -> GateState?
}

extension HostGate {
    package func state(of host: String) async -> GateState? { nil }
}

/// The known state of the path to a host. It is a hint for when to try, and never prevents an attempt.
package enum GateState: Hashable, Sendable {
    /// There is a route. `generation` rises with each change, also when the path was lost and found again. `route`
    /// changes only with the interface, source address or gateway: connections survive a short loss. `nil`: not known.
    case reachable(generation: UInt64, route: UInt64? = nil)
    case notReachable
    /// The state of the host could not be determined.
    case unknown

    package var generation: UInt64? {
        if case .reachable(let generation, _) = self { generation } else { nil }
    }
}
