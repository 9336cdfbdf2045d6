extension OperationGenerator {
    mutating func addressOperation() -> Operation {
        let cable = cable()
        return switch number(below: 13) {
        case ..<3: remove(one(["\(cable.nearIPv4)/24", "\(cable.nearIPv6)/64", "fe80::1/64"]), cable)
        case 3: add("\(cable.ipv4Network).\(3 + number(below: 4))/\(one([24, 25, 32]))", cable)
        case ..<6: add("\(cable.ipv6Network)::\(3 + number(below: 4))/\(one([64, 128])) nodad", cable)
        case 6: add("\(cable.ipv6Network)::a/64", cable)
        case 7: add("\(cable.farIPv6)/64", cable)
        case ..<10: deprecate(cable)
        case 10: add("\(one(Self.remotes))", on: "lo")
        case 11: selfAssigned(cable)
        default: add("\(cable.ipv4Network).7 peer \(cable.farIPv4)", cable)
        }
    }

    /// The addresses of watched hosts behind the far ends. Adding one to an interface makes it local.
    static let remotes = ["198.51.100.7/32", "198.51.100.200/32", "2001:db8:ffff::7/128"]

    private mutating func remove(_ address: String, _ cable: Cable) -> Operation {
        temporarily(
            Operation(.near("addr del \(address) dev \(cable.near)")),
            remedy: Operation(
                .near("addr add \(address) dev \(cable.near)\(address.contains(":") ? " nodad" : "")")
            )
        )
    }

    private mutating func add(_ address: String, _ cable: Cable) -> Operation {
        add(address, on: cable.near)
    }

    private mutating func add(_ address: String, on link: String) -> Operation {
        let prefix = address.split(separator: " nodad")[0]
        return temporarily(
            Operation(.near("addr add \(address) dev \(link)")),
            remedy: Operation(.near("addr del \(prefix) dev \(link)"))
        )
    }

    /// Replaces the IPv4 address of a link with one from 169.254.0.0/16 and adds a default route, as a DHCP client does
    /// that gets no answer. With a gateway, the route is usable only if the gateway is in the same network.
    private mutating func selfAssigned(_ cable: Cable) -> Operation {
        let gateway = one(["", "", "via 169.254.0.1 ", "via \(cable.farIPv4) onlink "])
        let route = "default \(gateway)dev \(cable.near) metric 1"
        return temporarily(
            Operation(
                .near("addr del \(cable.nearIPv4)/24 dev \(cable.near)"),
                .near("addr add 169.254.7.7/16 dev \(cable.near)"),
                .near("route add \(route)")
            ),
            remedy: Operation(
                .near("route del \(route)"),
                .near("addr del 169.254.7.7/16 dev \(cable.near)"),
                .near("addr add \(cable.nearIPv4)/24 dev \(cable.near)")
            )
        )
    }

    /// Deprecates one of the two IPv6 addresses of a link. The kernel then uses the other one as the source, because it
    /// uses a deprecated address only if there is no other.
    private mutating func deprecate(_ cable: Cable) -> Operation {
        let change =
            "addr change \(one([cable.nearIPv6, cable.secondIPv6]))/64 dev \(cable.near) valid_lft forever"
        return temporarily(
            Operation(.near("\(change) preferred_lft 0")),
            remedy: Operation(.near("\(change) preferred_lft forever"))
        )
    }
}
