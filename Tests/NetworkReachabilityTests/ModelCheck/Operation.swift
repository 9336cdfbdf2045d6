internal import NetwatchTestSupport

/// One change to the network. As a value it can be printed, repeated and left out.
struct Operation: Sendable, CustomStringConvertible {
    /// One step of an operation.
    enum Step: Sendable {
        /// An `ip` command in the monitor's namespace.
        case near(String)
        /// An `ip -6` command in the monitor's namespace, for a command whose arguments do not show the address family.
        case nearIPv6(String)
        /// An `ip` command in the namespace of the far ends.
        case far(String)
        /// Stops watching a host.
        case unwatch(String)
        /// Watches a host again.
        case watch(String)
        /// Sets a kernel parameter in the monitor's namespace: its path below `/proc/sys`, and the value.
        case parameter(String, String)
        /// Sends a router advertisement from an interface of the far namespace.
        case advertise(RouterAdvertisement, from: String)
    }

    let steps: [Step]

    init(_ steps: Step...) { self.steps = steps }
    init(_ steps: [Step]) { self.steps = steps }

    var description: String {
        steps.map(\.description).joined(separator: "; ")
    }
}

extension Operation.Step: CustomStringConvertible {
    /// The step as a command line, or in words for a watch.
    var description: String {
        switch self {
        case .near(let command): "ip \(command)"
        case .nearIPv6(let command): "ip -6 \(command)"
        case .far(let command): "far: ip \(command)"
        case .unwatch(let host): "stop watching \(host)"
        case .watch(let host): "watch \(host)"
        case .parameter(let name, let value): "sysctl \(name)=\(value)"
        case .advertise(let advertisement, let interface): "far: \(interface) advertises \(advertisement)"
        }
    }
}
