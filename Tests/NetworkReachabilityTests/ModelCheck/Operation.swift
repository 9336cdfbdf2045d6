/// One change to the network, as values that can be printed, repeated and left out.
struct Operation: Sendable, CustomStringConvertible {
    /// One command or setting.
    enum Step: Sendable {
        /// An `ip` command in the monitor's namespace.
        case near(String)
        /// The same with `ip -6`, for a command that does not specify its address family.
        case nearIPv6(String)
        /// An `ip` command in the namespace of the far ends.
        case far(String)
        /// Stops watching a host.
        case unwatch(String)
        case watch(String)
        /// A kernel parameter in the monitor's namespace: `net/ipv4/…`.
        case parameter(String, String)
    }

    let steps: [Step]

    init(_ steps: Step...) { self.steps = steps }
    init(_ steps: [Step]) { self.steps = steps }

    var description: String {
        steps.map(\.description).joined(separator: "; ")
    }
}

extension Operation.Step: CustomStringConvertible {
    /// The command as typed in the namespace.
    var description: String {
        switch self {
        case .near(let command): "ip \(command)"
        case .nearIPv6(let command): "ip -6 \(command)"
        case .far(let command): "far: ip \(command)"
        case .unwatch(let host): "stop watching \(host)"
        case .watch(let host): "watch \(host)"
        case .parameter(let name, let value): "sysctl \(name)=\(value)"
        }
    }
}
