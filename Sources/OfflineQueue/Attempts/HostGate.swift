package import NetworkReachability

/// The interface through which the queue learns which hosts are reachable, at the ports to which it connects.
/// ``MonitorGate`` implements it with the path monitor.
package protocol HostGate: Sendable {
    /// Reports the states of an endpoint: the current one first, as soon as it is known, and then each change. Does not
    /// wait.
    ///
    /// - Parameter report: Called on any thread, one call at a time, possibly before this function returns. It returns
    ///   soon.
    /// - Returns: The watch, which lasts until it is cancelled or released. `nil` if there is nothing to end, because the
    ///   state never changes.
    func watch(_ endpoint: Endpoint, report: @escaping @Sendable (GateState) -> Void) -> (any GateWatch)?

    /// Returns the current state of a watched endpoint, determined by new lookups in the kernel. Returns `nil` if the
    /// lookups are not possible; the last state from ``watch(_:report:)`` then applies.
    func state(of endpoint: Endpoint) async -> GateState?
}

/// A watch of an endpoint's states. It lasts until it is cancelled or released.
package protocol GateWatch: AnyObject, Sendable {
    /// Ends the watch. A report that is just being made may still follow.
    func cancel()
}

extension HostGate {
    package func state(of endpoint: Endpoint) async -> GateState? { nil }
}

/// The known state of the path to an endpoint. It only influences when requests are tried. An endpoint that is not
/// reachable is still tried from time to time.
package enum GateState: Hashable, Sendable {
    /// There is a path.
    ///
    /// - `generation` increases with each change, including a loss after which the same path returned.
    /// - `route` changes only with the interface, the source address or the gateway, or with the route of established
    ///   connections. While it is the same, connections survive a short loss. `nil` if it is not known.
    /// - `interface` is the interface of the path; `nil` if it is not known.
    case reachable(generation: UInt64, route: UInt64? = nil, interface: PathInterface? = nil)
    /// There is no path, for the given reason.
    case down(PathStatus.Reason)
    /// It could not be determined whether there is a path.
    case unknown

    /// Whether there is no path.
    package var isDown: Bool {
        if case .down = self { true } else { false }
    }

    /// The generation of the path; `nil` if there is no path or its state is unknown.
    package var generation: UInt64? {
        if case .reachable(let generation, _, _) = self { generation } else { nil }
    }
}
