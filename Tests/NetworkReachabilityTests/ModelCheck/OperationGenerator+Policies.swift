extension OperationGenerator {
    // MARK: Rules

    /// The port in rules, and of the connections if the monitor knows it.
    static let port: UInt16 = 8080

    mutating func ruleOperation() -> Operation {
        switch number(below: 10) {
        case 0: return onlySpecificRoutes()
        case 1: return protocolRule()
        default: break
        }
        let isIPv4 = isLikely(55)
        let network = isIPv4 ? cable().ipv4Network : cable().ipv6Network
        let target =
            isIPv4
            ? one([
                "to 198.51.100.0/24", "to 192.0.2.2", "from all", "iif lo to 203.0.113.0/24", "fwmark 7",
                "from \(network).1", "from \(network).0/24", "not from \(network).1",
                "from \(network).1 to 198.51.100.0/25", "ipproto udp",
            ])
            : one([
                "to 2001:db8:ffff::/48", "to 2001:db8::2", "from all", "iif lo", "fwmark 7",
                "from \(network)::/64", "from \(network)::1", "not from \(network)::5",
            ])
        let action = one(["prohibit", "unreachable", "blackhole", "lookup 70", "lookup 70", "lookup 70"])
        let rule = "\(target) pref \(100 + number(below: 3)) \(action)"
        let route =
            isIPv4
            ? "route replace default via \(cables[1].farIPv4) table 70"
            : "route replace ::/0 via \(cables[1].farIPv6) table 70"
        // Usually the table gets a route first, because a rule that selects an empty table has no effect.
        let preparation: [Step] = action == "lookup 70" && isLikely(70) ? [.near(route)] : []
        return temporarily(
            Operation(preparation + [isIPv4 ? .near("rule add \(rule)") : .nearIPv6("rule add \(rule)")]),
            remedy: Operation(isIPv4 ? .near("rule del \(rule)") : .nearIPv6("rule del \(rule)"))
        )
    }

    /// Adds a rule for TCP connections or for a port.
    ///
    /// It precedes the rules with `from`, because the monitor finds the source of an IPv6 connection with a UDP socket.
    /// If a later rule rejected only TCP, the kernel could choose another source for UDP.
    private mutating func protocolRule() -> Operation {
        let selector = one([
            "ipproto tcp", "ipproto tcp dport \(Self.port)", "dport \(Self.port - 10)-\(Self.port)",
            "ipproto tcp sport 22", "sport 1-1023",
        ])
        let rule = "\(selector) pref 99 \(one(["prohibit", "unreachable", "blackhole"]))"
        let isIPv4 = isLikely(50)
        return temporarily(
            Operation(isIPv4 ? .near("rule add \(rule)") : .nearIPv6("rule add \(rule)")),
            remedy: Operation(isIPv4 ? .near("rule del \(rule)") : .nearIPv6("rule del \(rule)"))
        )
    }

    /// Replaces the default routes of the main table, but none of its other routes, as the rules of a WireGuard tunnel
    /// do (`wg-quick`).
    private mutating func onlySpecificRoutes() -> Operation {
        let isIPv4 = isLikely(50)
        let rules = ["lookup main suppress_prefixlength 0 pref 105", "not fwmark 7 lookup 70 pref 106"]
        let route =
            isIPv4
            ? "route replace default via \(cables[1].farIPv4) table 70"
            : "route replace ::/0 via \(cables[1].farIPv6) table 70"
        func step(_ command: String) -> Step { isIPv4 ? .near(command) : .nearIPv6(command) }
        return temporarily(
            Operation([step(route)] + rules.map { step("rule add \($0)") }),
            remedy: Operation(rules.map { step("rule del \($0)") })
        )
    }

    // MARK: Next hop objects

    mutating func nextHopOperation() -> Operation {
        let cable = cable()
        let isIPv4 = isLikely(60)
        // The IPv4 next hops have the IDs 1 and 2, and their group has 3. The IPv6 next hops have 11 and 12, and their
        // group has 13.
        let first = isIPv4 ? 1 : 11
        let id = first + number(below: 2)
        let target = isIPv4 ? "198.51.100.0/24" : "2001:db8:ffff::/48"
        let blackhole = "nexthop replace id \(id) blackhole"
        let hop = "via \(isIPv4 ? cable.farIPv4 : cable.farIPv6) dev \(cable.near)"
        return switch number(below: 10) {
        case ..<4: career(of: id, target, cable)
        case ..<6: Operation(.near("nexthop replace id \(id) \(hop)"))
        case 6:
            temporarily(
                Operation(isIPv4 ? .near(blackhole) : .nearIPv6(blackhole)),
                remedy: Operation(.near("nexthop replace id \(id) \(hop)"))
            )
        case 7: Operation(.near("nexthop del id \(id)"))
        default: group(first, target, cable)
        }
    }

    /// Creates, replaces and deletes a next hop object that a route uses. The kernel sends notifications of the object,
    /// not of its routes.
    private mutating func career(of id: Int, _ target: String, _ cable: Cable) -> Operation {
        let other = one(cables)
        func hop(_ cable: Cable) -> Step {
            .near("nexthop replace id \(id) via \(id < 10 ? cable.farIPv4 : cable.farIPv6) dev \(cable.near)")
        }
        return inTurn(
            Operation(hop(cable), .near("route replace \(target) nhid \(id)")),
            Operation(hop(other)),
            Operation(.near("nexthop del id \(id)"))
        )
    }

    private mutating func group(_ first: Int, _ target: String, _ cable: Cable) -> Operation {
        let other = one(cables)
        let isIPv4 = first == 1
        let id = first + 2
        let gateways = isIPv4 ? (cable.farIPv4, other.farIPv4) : (cable.farIPv6, other.farIPv6)
        return temporarily(
            Operation(
                .near("nexthop replace id \(first) via \(gateways.0) dev \(cable.near)"),
                .near("nexthop replace id \(first + 1) via \(gateways.1) dev \(other.near)"),
                .near("nexthop replace id \(id) group \(first)/\(first + 1)"),
                .near("route replace \(target) nhid \(id)")
            ),
            remedy: Operation(.near("nexthop \(one(["del id \(id)", "del id \(first)"]))"))
        )
    }

    // MARK: Kernel parameters

    mutating func parameterOperation() -> Operation {
        let cable = cable()
        let link = one(["all", "default", cable.near])
        return switch number(below: 8) {
        case ..<3: ignoreLinkDown(cable)
        case 3: switchOn("net/ipv4/conf/\(link)/ignore_routes_with_linkdown")
        case 4: switchOn("net/ipv6/conf/\(link)/ignore_routes_with_linkdown")
        case 5: switchOn("net/ipv6/conf/\(cable.near)/disable_ipv6")
        default: compatibility()
        }
    }

    /// Makes the preferred one of two default routes lose its carrier, and changes the setting that decides whether the
    /// kernel still uses that route.
    private mutating func ignoreLinkDown(_ cable: Cable) -> Operation {
        let other = one(cables)
        let family = one(["ipv4", "ipv6"])
        let setting = "net/\(family)/conf/\(cable.near)/ignore_routes_with_linkdown"
        return inTurn(
            Operation(
                .near("route replace default via \(cable.farIPv4) dev \(cable.near) metric 1"),
                .near("route replace default via \(other.farIPv4) dev \(other.near) metric 2"),
                .near("route replace ::/0 via \(cable.farIPv6) dev \(cable.near) metric 1"),
                .near("route replace ::/0 via \(other.farIPv6) dev \(other.near) metric 2"),
                .far("link set \(cable.far) down")
            ),
            Operation(.parameter(setting, "1")),
            Operation(.parameter(setting, "0")),
            Operation(.far("link set \(cable.far) up"))
        )
    }

    private mutating func switchOn(_ parameter: String) -> Operation {
        temporarily(Operation(.parameter(parameter, "1")), remedy: Operation(.parameter(parameter, "0")))
    }

    /// Sets whether the kernel sends notifications of the routes that use a replaced next hop object.
    private mutating func compatibility() -> Operation {
        Operation(.parameter("net/ipv4/nexthop_compat_mode", isLikely(70) ? "0" : "1"))
    }
}
