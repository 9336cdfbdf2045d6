extension OperationGenerator {
    mutating func linkOperation() -> Operation {
        let cable = cable()
        return switch number(below: 14) {
        case ..<2: change(cable.near, "down", remedy: "up")
        case 2: Operation(.near("link set \(cable.near) down"), .near("link set \(cable.near) up"))
        case ..<7: unplug(cable)
        case 7: replaceLink(cable)
        case 8: rename(cable)
        case 9: change(cable.near, "mtu \(one([1000, 1280, 1400]))", remedy: "mtu 1500")
        case 10: bridge(cable)
        case 11: macvlan(cable)
        case 12: change("lo", "down", remedy: "up")
        default: change(cable.near, "mode dormant", remedy: "mode default")
        }
    }

    private mutating func change(_ link: String, _ setting: String, remedy: String) -> Operation {
        temporarily(
            Operation(.near("link set \(link) \(setting)")),
            remedy: Operation(.near("link set \(link) \(remedy)"))
        )
    }

    private mutating func unplug(_ cable: Cable) -> Operation {
        temporarily(
            Operation(.far("link set \(cable.far) down")),
            remedy: Operation(.far("link set \(cable.far) up"))
        )
    }

    /// Deletes a link, and creates it again immediately or later, with the same index or with another one.
    private mutating func replaceLink(_ cable: Cable) -> Operation {
        let deletion = Operation(.near("link del \(cable.near)"))
        let index = isLikely(50) ? cable.index : 200 + number(below: 50)
        let creation = ModelTestbed.laying(cable, index: index)
        if isLikely(50) { return Operation(deletion.steps + creation.steps) }
        return temporarily(deletion, remedy: creation)
    }

    private mutating func rename(_ cable: Cable) -> Operation {
        temporarily(
            Operation(.near("link set \(cable.near) name other\(cable.number)")),
            remedy: Operation(.near("link set other\(cable.number) name \(cable.near)"))
        )
    }

    private mutating func bridge(_ cable: Cable) -> Operation {
        let creation: [Step] = [
            .near("link add br0 type bridge"),
            .near("link set br0 addrgenmode none up"),
            .near("addr add \(cable.ipv4Network).9/24 dev br0"),
            .near("addr add \(cable.ipv6Network)::9/64 dev br0 nodad"),
        ]
        later(Operation(.near("link set \(cable.near) nomaster")))
        later(Operation(.near("link del br0")))
        return Operation(creation + [.near("link set \(cable.near) master br0")])
    }

    private mutating func macvlan(_ cable: Cable) -> Operation {
        later(Operation(.near("link del mv0")))
        return Operation(
            .near("link add mv0 link \(cable.near) type macvlan mode bridge"),
            .near("link set mv0 addrgenmode none up"),
            .near("addr add \(cable.ipv4Network).8/25 dev mv0"),
            .near("addr add \(cable.ipv6Network)::8/65 dev mv0 nodad")
        )
    }
}
