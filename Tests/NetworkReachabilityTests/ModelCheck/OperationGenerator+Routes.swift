extension OperationGenerator {
    /// Prefixes of different lengths that cover watched hosts.
    private static let ipv4Prefixes = [
        "default", "198.0.0.0/8", "198.51.100.0/24", "198.51.100.128/25", "198.51.100.7", "198.51.100.200",
        "192.0.2.0/24", "192.0.2.2", "203.0.113.2", "203.0.113.0/30",
    ]
    private static let ipv6Prefixes = [
        "::/0", "2000::/3", "2001:db8:ffff::/48", "2001:db8:ffff:1::/64", "2001:db8:ffff::7", "2001:db8::2",
        "2001:db8:1::/64",
    ]

    mutating func routeOperation() -> Operation {
        let cable = cable()
        let isIPv4 = isLikely(55)
        let prefix = one(isIPv4 ? Self.ipv4Prefixes : Self.ipv6Prefixes)
        let other = one(cables)
        let gateway = isIPv4 ? cable.farIPv4 : cable.farIPv6
        let otherGateway = isIPv4 ? other.farIPv4 : other.farIPv6
        return switch number(below: 16) {
        case ..<3: route("\(prefix) via \(gateway) dev \(cable.near)")
        case 3: route("\(prefix) dev \(cable.near)")
        case ..<6: route("\(one(["blackhole", "unreachable", "prohibit", "throw"])) \(prefix)")
        case 6: route("\(prefix) via \(gateway) metric \(one([1, 50, 2000]))")
        case ..<9: route("\(prefix) nexthop via \(gateway) nexthop via \(otherGateway)")
        case 9: route("\(prefix) via \(gateway) src \(isIPv4 ? cable.nearIPv4 : cable.nearIPv6)")
        case 10: route("\(prefix) via \(gateway) table 70")
        case 11: route("\(isIPv4 ? "local" : "unreachable") \(prefix == "default" ? "198.51.100.7" : prefix)")
        case 12: Operation(.near("route del \(prefix)"))
        case ..<15: sourceSpecific(via: cable)
        default:
            hasRouter && isLikely(50)
                ? expiring(via: cable) : route("\(prefix) via \(gateway) onlink dev \(cable.near)")
        }
    }

    private mutating func route(_ route: String) -> Operation {
        let verb = one(["add", "replace", "append"])
        let complete = route.hasPrefix("local") ? "\(route) dev lo" : route
        return temporarily(
            Operation(.near("route \(verb) \(complete)")),
            remedy: Operation(.near("route del \(complete)"))
        )
    }

    /// Adds an IPv6 route that is valid only for some source addresses, usually instead of the default route for all of
    /// them.
    private mutating func sourceSpecific(via cable: Cable) -> Operation {
        let network = one([cable, one(cables)]).ipv6Network
        let sources = ["::/64", "::/64", "::1", "::5"].map { "\(network)\($0)" }
        let source = one(sources + ["2001:db8::/32"])
        let prefix = one(["::/0", "::/0", "2000::/3", "2001:db8:ffff::/48"])
        let table = one(["", "", " table 70"])
        let route = "\(prefix) from \(source) via \(cable.farIPv6) dev \(cable.near)\(table)"
        let preparation: [Step] = isLikely(80) ? [.near("route del ::/0")] : []
        return temporarily(
            Operation(preparation + [.near("route \(one(["add", "replace", "append"])) \(route)")]),
            remedy: Operation(.near("route del \(route)"))
        )
    }

    /// Adds a route that expires after 2 s, and then the same route without an expiry.
    ///
    /// If the kernel still has the expired route, the second command fails with EEXIST. The kernel nevertheless removes
    /// the expiry of the existing route, which becomes valid again without a notification.
    private mutating func expiring(via cable: Cable) -> Operation {
        let route = "2001:db8:ffff::/48 via \(cable.farIPv6)"
        later(Operation(.near("route add \(route)")))
        return Operation(.near("route replace \(route) expires 2"))
    }
}
