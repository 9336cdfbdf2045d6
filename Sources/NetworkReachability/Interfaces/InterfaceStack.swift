internal import NetwatchNetlink

/// How the interfaces of one moment rest on one another. Pure: no call is made here.
struct InterfaceStack: Sendable {
    private let links: [UInt32: Link]
    private let types: [UInt32: InterfaceType]
    private let ports: [UInt32: [Link]]
    /// Interfaces that could have a default route to the outside, the likelier first.
    private var underlayCandidates: [Link] = []

    /// - Parameters:
    ///   - links: Every interface by its index.
    ///   - types: The type of each, of ``InterfaceClassifier``.
    init(links: [UInt32: Link], types: [UInt32: InterfaceType]) {
        self.links = links
        self.types = types
        ports = Dictionary(grouping: links.values.filter { $0.master != nil }) { $0.master! }
        if types.values.contains(.tunnel) { underlayCandidates = sortedUnderlayCandidates() }
    }

    /// Whether a default route leads over an interface; asked for tunnels only, a few times at most.
    typealias HasDefaultRoute = (UInt32) -> Bool

    /// The interfaces that a packet passes on its way down, from this one to the one that carries it in the
    /// end. The kernel allows no circle, but a table that was read while it changed may show one.
    func way(down index: UInt32, hasDefaultRoute: HasDefaultRoute) -> [UInt32] {
        var way = [index]
        var seen: Set = [index]
        while let next = below(way.last!, hasDefaultRoute), seen.insert(next).inserted { way.append(next) }
        return way
    }

    private func below(_ index: UInt32, _ hasDefaultRoute: HasDefaultRoute) -> UInt32? {
        guard let link = links[index] else { return nil }
        switch types[index] {
        case .bridge, .bond: return carryingPort(of: index)
        case .tunnel: return underlay(of: link, hasDefaultRoute)
        case .vlan, .macvlan, .other: return lowerLinkHere(link)
        // The rest are media. What a veth names is no interface below it but its other end.
        default: return nil
        }
    }

    private func lowerLinkHere(_ link: Link) -> UInt32? {
        guard let lower = link.lowerLink, !link.lowerIsElsewhere, links[lower] != nil else { return nil }
        return lower
    }

    /// The port that leads out of the machine rather than to a container on it; of several one that has a
    /// carrier; of several such the oldest.
    private func carryingPort(of index: UInt32) -> UInt32? {
        func rank(_ port: Link) -> (Int, Int, UInt32) {
            let isInner = [.veth, .tunnel, .other].contains(types[port.index])
            return (isInner ? 1 : 0, port.hasCarrier ? 0 : 1, port.index)
        }
        return ports[index]?.min { rank($0) < rank($1) }?.index
    }
}

// MARK: - Tunnels

extension InterfaceStack {
    /// The interface that a tunnel's own packets leave by: the one it names, else one with a default route.
    ///
    /// Where the packets go is known to the tunnel's driver or its program only. A tunnel made in another
    /// namespace sends from there.
    private func underlay(of tunnel: Link, _ hasDefaultRoute: HasDefaultRoute) -> UInt32? {
        if tunnel.lowerLink != nil { return lowerLinkHere(tunnel) }
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
    /// Wired before Wi-Fi before mobile, as network managers number the metrics of default routes.
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
    /// Describes one interface; `nil` when it is not there.
    ///
    /// - Parameter addresses: Its addresses; those of other interfaces are left out.
    func describe(
        _ index: UInt32,
        addresses: [InterfaceAddress],
        hasDefaultRoute: HasDefaultRoute
    ) -> NetworkInterface? {
        guard let link = links[index], let type = types[index] else { return nil }
        let way = way(down: index, hasDefaultRoute: hasDefaultRoute)
        let medium = way.last.flatMap { types[$0] } ?? type
        let usable = addresses.filter { $0.interface == index && $0.isUsable }
        return NetworkInterface(
            index: index,
            name: link.name,
            type: type,
            medium: medium,
            isUp: link.isUp,
            hasCarrier: link.hasCarrier,
            isTunnel: way.contains { types[$0] == .tunnel },
            addresses: usable.map(\.address),
            mtu: Int(link.mtu),
            metered: .init(medium: medium)
        )
    }

    /// Describes every interface, in the order of their indexes.
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
