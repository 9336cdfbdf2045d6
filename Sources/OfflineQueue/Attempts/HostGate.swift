package import NetwatchEventLoop
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

/// Passes the states of gates to the queue. The buffer holds at most one state per endpoint, the newest, and one task
/// reads it for all watches. A task and an `AsyncStream` for each watch would use about as much memory as everything
/// else that the queue knows of a host.
final class GateChanges: Sendable {
    /// A new state of an endpoint's gate.
    struct Change: Hashable, Sendable {
        let endpoint: Endpoint
        /// The number of the watch that has reported the state. Later watches have higher numbers.
        let watch: UInt64
        let state: GateState
    }

    private let waiting = Lock<[Endpoint: Change]>([:])
    private let signals: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation

    init() {
        (signals, signal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Buffers a state and wakes the reader. A late report of a watch that has ended does not replace one of the endpoint's
    /// next watch.
    func post(_ change: Change) {
        waiting.withLock { waiting in
            if let other = waiting[change.endpoint], other.watch > change.watch { return }
            waiting[change.endpoint] = change
        }
        signal.yield()
    }

    /// Waits for a change, and returns the changes since the last call in the order of their watches. Returns an empty array
    /// once the calling task is cancelled. Only one task may call this.
    func next() async -> [Change] {
        for await _ in signals {
            let changes = waiting.withLock { waiting in
                defer { waiting = [:] }
                return waiting.values.sorted { $0.watch < $1.watch }
            }
            if !changes.isEmpty { return changes }
        }
        return []
    }
}

/// The interface through which the queue learns whether a captive portal intercepts plain HTTP.
/// ``PathPortalDetector`` implements it with a captive portal probe.
package protocol PortalDetector: Sendable {
    /// Probes the current path to an endpoint once. Returns within seconds.
    func probe(pathTo endpoint: Endpoint) async -> PortalFinding

    /// Returns whether the last probe of the current path to an endpoint has failed. The path counts as the same for
    /// all endpoints to which packets take the same gateway.
    func hasFailed(pathTo endpoint: Endpoint) async -> Bool

    /// Discards what ``hasFailed(pathTo:)`` knows, because a path changed. The probes in progress do not count for it.
    func pathsChanged() async
}

/// The result of a captive portal probe.
package enum PortalFinding: Hashable, Sendable {
    /// There is no portal.
    case clear
    /// A portal intercepts plain HTTP. `page` is the URL at which a user can log in, if it is known.
    case captive(page: String?)
    /// The probe got no usable response, so a portal is neither proven nor ruled out.
    case failed
}

/// The interface of a path, for the constraints of requests.
package struct PathInterface: Hashable, Sendable {
    package let kind: InterfaceType
    package let isMetered: Bool
    /// The interface and source address of the path, to which a socket can be bound; `nil` if they are not known.
    ///
    /// The binding takes part in `==`, so that a change of the source address alone is a change of the gate. Otherwise the
    /// scheduler would bind later attempts to an address that no longer exists. The path monitor reports such a change
    /// as another path in any case.
    package let binding: SocketBinding?

    package init(kind: InterfaceType, isMetered: Bool, binding: SocketBinding? = nil) {
        self.kind = kind
        self.isMetered = isMetered
        self.binding = binding
    }
}

extension RequestConstraints {
    /// Whether a constraint concerns the interface.
    var concernInterface: Bool { isUnmetered || !interfaceKinds.isEmpty }

    /// Returns the first constraint that an interface does not meet; `nil` if it meets all.
    ///
    /// - Parameter interface: `nil` if it is not known. It then meets no constraint.
    func unmet(by interface: PathInterface?) -> UnmetConstraint? {
        if isUnmetered, interface?.isMetered ?? true { return .unmetered }
        guard !interfaceKinds.isEmpty else { return nil }
        let isMet = interface.map { interfaceKinds.contains($0.kind) } ?? false
        return isMet ? nil : .interfaceKind(interfaceKinds)
    }
}

/// The interfaces that a user declares as metered, by name.
package struct MeteredInterfaces: Sendable {
    /// Names, in which `*` stands for any number of characters.
    let patterns: [String]

    private static let longestPattern = 255

    /// A description of the patterns that ``isValid(_:)`` accepts, for error messages.
    package static let accepted =
        "the name of an interface, 1 to \(InterfaceName.maximumBytes) bytes without spaces, `/` and `:`, such as "
        + "wwan0; `*` stands for any characters"

    /// Returns whether an interface can have a name that matches the pattern (`dev_valid_name` in Linux).
    package static func isValid(_ pattern: String) -> Bool {
        let fixed = pattern.filter { $0 != "*" }
        return (1...longestPattern).contains(pattern.utf8.count)
            && fixed.utf8.count <= InterfaceName.maximumBytes
            && ![".", ".."].contains(pattern)
            && !pattern.contains { $0.isWhitespace || $0 == "/" || $0 == ":" }
    }

    /// Returns whether an interface is metered: a mobile network always is.
    func contains(name: String, kind: InterfaceType) -> Bool {
        kind == .cellular || patterns.contains { Self.matches(name[...], $0[...]) }
    }

    private static func matches(_ name: Substring, _ pattern: Substring) -> Bool {
        guard let first = pattern.first else { return name.isEmpty }
        guard first == "*" else {
            return name.first == first && matches(name.dropFirst(), pattern.dropFirst())
        }
        // Several stars in a row would multiply the number of calls.
        let rest = pattern.drop { $0 == "*" }
        return matches(name, rest) || (!name.isEmpty && matches(name.dropFirst(), pattern))
    }
}
