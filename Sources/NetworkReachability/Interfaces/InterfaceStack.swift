internal import NetwatchNetlink

/// The interfaces at one moment, and the layers that they form: a bridge, a VLAN or a tunnel is above the interface
/// that carries its packets. Makes no system calls.
struct InterfaceStack: Sendable {
    private let links: [UInt32: Link]
    private let types: [UInt32: InterfaceType]
    private let ports: [UInt32: [Link]]
    /// The interfaces that may carry the packets of a tunnel, the most likely first. Empty if there are no tunnels.
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

    /// Returns whether a default route uses the interface. Called only for the candidates of tunnels, because the
    /// answer needs a route lookup.
    typealias HasDefaultRoute = (UInt32) -> Bool

    /// Returns the interfaces that a packet passes, from the given one down to the one that finally carries it.
    ///
    /// The kernel allows no cycles, but a table that was read during a change may contain one. The result ends before
    /// an interface that it already contains.
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
        // All other types carry packets themselves. The "lower link" that a veth reports is its other end.
        default: return nil
        }
    }

    private func lowerLinkInNamespace(_ link: Link) -> UInt32? {
        guard let lower = link.lowerLink, !link.lowerIsInOtherNamespace, links[lower] != nil else {
            return nil
        }
        return lower
    }

    /// Returns the port of a bridge or bond that most likely leads out of the machine; `nil` if there are no ports.
    ///
    /// Ports that usually lead to local containers come last. Among the others, ports with carrier come first, and
    /// then the oldest port.
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
    /// Returns the interface that most likely carries the encapsulated packets of a tunnel; `nil` if it is unknown.
    ///
    /// - If the kernel reports a lower link for the tunnel, the result is this link, or `nil` if the link is in another
    ///   network namespace.
    /// - If it reports none, the result is the first candidate with a default route. This is a guess, because only the
    ///   tunnel's driver or program knows where the packets go.
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
    /// The rank among default routes, the preferred one first: wired, Wi-Fi, mobile. Network managers assign route
    /// metrics in this order.
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
    /// Returns the description of one interface; `nil` if no interface has the index.
    ///
    /// - Parameter addresses: The addresses of this interface.
    func describe(
        _ index: UInt32,
        addresses: [NetworkInterface.AssignedAddress],
        hasDefaultRoute: HasDefaultRoute
    ) -> NetworkInterface? {
        guard let link = links[index], let type = types[index] else { return nil }
        let layers = layers(from: index, hasDefaultRoute: hasDefaultRoute)
        let medium = layers.last.flatMap { types[$0] } ?? type
        return NetworkInterface(
            index: index,
            name: link.name,
            type: type,
            medium: medium,
            isUp: link.isUp,
            hasCarrier: link.hasCarrier,
            isTunnel: layers.contains { types[$0] == .tunnel },
            assignedAddresses: addresses,
            mtu: Int(link.mtu),
            metered: .init(medium: medium)
        )
    }

    /// Returns the descriptions of all interfaces, sorted by index.
    ///
    /// - Parameter addresses: The addresses of each interface, by index.
    func describeAll(
        addresses: [UInt32: [NetworkInterface.AssignedAddress]],
        hasDefaultRoute: HasDefaultRoute
    ) -> [NetworkInterface] {
        links.keys.sorted().compactMap { index in
            describe(index, addresses: addresses[index] ?? [], hasDefaultRoute: hasDefaultRoute)
        }
    }
}

extension NetworkInterface.AssignedAddress {
    init(_ address: InterfaceAddress) {
        self.init(
            address: address.address,
            prefixLength: Int(address.prefixLength),
            isUsable: address.isUsable
        )
    }
}
