internal import NetworkReachability

/// The `HostGate` of a queue whose session sends to a unix socket, which needs no network. Requests are always tried.
struct LocalGate: HostGate {
    /// The path through the socket. It never changes.
    private static let state = GateState.reachable(
        generation: 0,
        route: 0,
        interface: PathInterface(kind: .loopback, isMetered: false)
    )

    func watch(_ endpoint: Endpoint, report: @escaping @Sendable (GateState) -> Void) -> (any GateWatch)? {
        report(Self.state)
        return nil
    }

    func state(of endpoint: Endpoint) async -> GateState? { Self.state }
}
