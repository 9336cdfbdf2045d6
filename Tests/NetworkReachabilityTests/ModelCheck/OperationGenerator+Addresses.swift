extension OperationGenerator {
    mutating func addressOperation() -> Operation {
        let cable = cable()
        return switch number(below: 12) {
        case ..<3: remove(one(["\(cable.nearIPv4)/24", "\(cable.nearIPv6)/64", "fe80::1/64"]), cable)
        case 3: add("\(cable.ipv4Network).\(3 + number(below: 4))/\(one([24, 25, 32]))", cable)
        case ..<6: add("\(cable.ipv6Network)::\(3 + number(below: 4))/\(one([64, 128])) nodad", cable)
        case 6: add("\(cable.ipv6Network)::a/64", cable)
        case 7: add("\(cable.farIPv6)/64", cable)
        case ..<10: deprecate(cable)
        case 10: add("\(one(Self.remotes))", on: "lo")
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
