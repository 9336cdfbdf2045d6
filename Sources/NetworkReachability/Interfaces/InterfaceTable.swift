internal import NetwatchEventLoop
internal import NetwatchNetlink

/// The interfaces and their addresses at one moment.
struct InterfaceTable: Hashable, Sendable {
    let links: [UInt32: Link]
    let addresses: [UInt32: [InterfaceAddress]]
    /// Whether a loopback interface exists but is down. The machine cannot reach itself then.
    let isLoopbackDown: Bool
    /// The description of each interface, by index. Set by ``PathReader`` after the types have been determined.
    var descriptions: [UInt32: NetworkInterface] = [:]

    init(links: [Link] = [], addresses: [InterfaceAddress] = []) {
        self.links = Dictionary(links.map { ($0.index, $0) }) { _, last in last }
        self.addresses = Dictionary(grouping: addresses, by: \.interface)
        isLoopbackDown = links.contains { $0.isLoopback && !$0.isUp }
    }

    /// Returns the index of the interface with this name; `nil` if there is none.
    func index(named name: String) -> UInt32? {
        links.values.first { $0.name == name }?.index
    }

    /// Returns whether packets can be sent from an address; `nil` if no interface has this address.
    ///
    /// - Parameter interface: The interface to check first, because several interfaces may have the same link-local
    ///   address.
    func isUsable(source: IPAddress, on interface: UInt32?) -> Bool? {
        func usable(on index: UInt32) -> Bool? {
            addresses[index]?.first { $0.address.bits == source.bits && $0.address.family == source.family }?
                .isUsable
        }
        if let interface, let answer = usable(on: interface) { return answer }
        return addresses.keys.sorted().lazy.compactMap(usable).first
    }

    /// The addresses from which a remote name server can be queried: usable, not link-local, not on loopback, and on
    /// an interface with carrier.
    ///
    /// The `veth` interfaces of containers usually have no such address, so this set does not change when a container
    /// starts or stops.
    var outboundSources: Set<InterfaceAddress> {
        let usable = addresses.values.joined().filter { address in
            guard let link = links[address.interface], !link.isLoopback, link.hasCarrier else { return false }
            return address.isUsable && !address.address.isLinkLocal
        }
        return Set(usable.map(\.withoutLifetimes))
    }

    /// Returns whether an interface has a carrier now that it did not have before.
    ///
    /// A port of a bridge or bond does not count if it has no address, because it carries no packets of this machine
    /// itself. The link of a container is an example.
    func hasBetterLink(than before: InterfaceTable) -> Bool {
        links.values.contains { link in
            let isPort = link.master != nil && addresses[link.index] == nil
            return link.hasCarrier && !isPort && before.links[link.index]?.hasCarrier != true
        }
    }
}

extension InterfaceAddress {
    /// The address without its flags. Router advertisements can change the flags, which does not affect reachability.
    fileprivate var withoutLifetimes: InterfaceAddress {
        InterfaceAddress(interface: interface, address: address, flags: 0)
    }
}
