/// One change to the network, as values: it can be printed, repeated, and left out.
struct Operation: Sendable, CustomStringConvertible {
    /// One command or setting.
    enum Step: Sendable {
        /// An `ip` command where the monitor is.
        case near(String)
        /// The same with `ip -6`, for what does not tell its family.
        case nearIPv6(String)
        /// An `ip` command at the far ends of the cables.
        case far(String)
        /// The end of the watch of a host, and the start of another.
        case unwatch(String)
        case watch(String)
        /// A kernel parameter where the monitor is: `net/ipv4/…`.
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
    /// As one would type it in the namespace.
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
