internal import NetwatchNetlink

/// The layering of the interfaces at one moment. Pure: makes no system calls.
struct InterfaceStack: Sendable {
    private let links: [UInt32: Link]
    private let types: [UInt32: InterfaceType]
    private let ports: [UInt32: [Link]]
    /// The interfaces that could have a default route to the outside, the most likely first.
    private var underlayCandidates: [Link] = []

    /// - Parameters:
    ///   - links: All interfaces by index.
    ///   - types: Their types, from ``InterfaceClassifier``.
    init(links: [UInt32: Link], types: [UInt32: InterfaceType]) {
        self.links = links
        self.types = types
        ports = Dictionary(grouping: links.values.filter { $0.master != nil }) { $0.master! }
        if types.values.contains(.tunnel) { underlayCandidates = sortedUnderlayCandidates() }
    }

    /// Returns whether a default route uses the interface. Called only for tunnels, and only a few times.
    typealias HasDefaultRoute = (UInt32) -> Bool

    /// Returns the interfaces that a packet passes, from this one down to the one that finally carries it. The kernel
    /// allows no cycles, but a table that was read during a change may contain one.
    func layers(from index: UInt32, hasDefaultRoute: HasDefaultRoute) -> [UInt32] {
        var layers = [index]
        var seen: Set = [index]
        while let next = below(layers.last!, hasDefaultRoute), seen.insert(next).inserted {
            layers.append(next)
        }
        return layers
    }

    private func below(_ index: UInt32, _ hasDefaultRoute: HasDefaultRoute) -> UInt32? {
        guard let link = links[index] else { return nil }
        switch types[index] {
        case .bridge, .bond: return carryingPort(of: index)
        case .tunnel: return underlay(of: link, hasDefaultRoute)
        case .vlan, .macvlan, .other: return lowerLinkInNamespace(link)
        // All other types are media. The lower link of a veth is not below it; it is its other end.
        default: return nil
        }
    }

    private func lowerLinkInNamespace(_ link: Link) -> UInt32? {
        guard let lower = link.lowerLink, !link.lowerIsInOtherNamespace, links[lower] != nil else {
            return nil
        }
        return lower
    }

    /// Returns the port of a bridge or bond that leads out of the machine, not to a local container. Ports with
    /// carrier come first, then the oldest port.
    private func carryingPort(of index: UInt32) -> UInt32? {
        func rank(_ port: Link) -> (Int, Int, UInt32) {
            let isInternal = [.veth, .tunnel, .other].contains(types[port.index])
            return (isInternal ? 1 : 0, port.hasCarrier ? 0 : 1, port.index)
        }
        return ports[index]?.min { rank($0) < rank($1) }?.index
    }
}

// MARK: - Tunnels

extension InterfaceStack {
    /// Returns the interface that a tunnel's own packets leave through: its lower link, otherwise one with a default
    /// route.
    ///
    /// Only the tunnel's driver or program knows where the packets really go. A tunnel that was created in another
    /// namespace sends from there.
    private func underlay(of tunnel: Link, _ hasDefaultRoute: HasDefaultRoute) -> UInt32? {
        if tunnel.lowerLink != nil { return lowerLinkInNamespace(tunnel) }
        return underlayCandidates.first { hasDefaultRoute($0.index) }?.index
    }

    private func sortedUnderlayCandidates() -> [Link] {
        func rank(_ link: Link) -> (Int, UInt32) {
            (types[link.index]?.usualPrecedence ?? .max, link.index)
        }
        return links.values.filter(mayCarryTunnels).sorted { rank($0) < rank($1) }
    }

    private func mayCarryTunnels(_ link: Link) -> Bool {
        let isPort = link.master.map { [.bridge, .bond].contains(types[$0]) } ?? false
        return link.hasCarrier && !isPort && ![.loopback, .tunnel].contains(types[link.index])
    }
}

extension InterfaceType {
    /// The usual precedence: wired, Wi-Fi, mobile. Network managers assign the metrics of default routes in this
    /// order.
    fileprivate var usualPrecedence: Int {
        switch self {
        case .wifi: 1
        case .cellular, .bluetooth: 2
        default: 0
        }
    }
}

// MARK: - Description

extension InterfaceStack {
    /// Describes one interface. Returns `nil` if it does not exist.
    ///
    /// - Parameter addresses: The addresses of the interface. Those of other interfaces are ignored.
    func describe(
        _ index: UInt32,
        addresses: [InterfaceAddress],
        hasDefaultRoute: HasDefaultRoute
    ) -> NetworkInterface? {
        guard let link = links[index], let type = types[index] else { return nil }
        let layers = layers(from: index, hasDefaultRoute: hasDefaultRoute)
        let medium = layers.last.flatMap { types[$0] } ?? type
        let usable = addresses.filter { $0.interface == index && $0.isUsable }
        return NetworkInterface(
            index: index,
            name: link.name,
            type: type,
            medium: medium,
            isUp: link.isUp,
            hasCarrier: link.hasCarrier,
            isTunnel: layers.contains { types[$0] == .tunnel },
            addresses: usable.map(\.address),
            mtu: Int(link.mtu),
            metered: .init(medium: medium)
        )
    }

    /// Describes all interfaces, sorted by index.
    func describeAll(
        addresses: [InterfaceAddress],
        hasDefaultRoute: HasDefaultRoute
    ) -> [NetworkInterface] {
        let addresses = Dictionary(grouping: addresses, by: \.interface)
        return links.keys.sorted().compactMap { index in
            describe(index, addresses: addresses[index] ?? [], hasDefaultRoute: hasDefaultRoute)
        }
    }
}
