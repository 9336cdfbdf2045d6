internal import NetwatchEventLoop
internal import NetwatchNetlink

/// The interfaces and their addresses at one moment.
struct InterfaceTable: Hashable, Sendable {
    let links: [UInt32: Link]
    let addresses: [UInt32: [InterfaceAddress]]
    /// Whether there is a loopback interface that carries nothing, not even to this machine itself.
    let isLoopbackDown: Bool
    /// What each interface is.
    var descriptions: [UInt32: NetworkInterface] = [:]

    init(links: [Link] = [], addresses: [InterfaceAddress] = []) {
        self.links = Dictionary(links.map { ($0.index, $0) }) { _, last in last }
        self.addresses = Dictionary(grouping: addresses, by: \.interface)
        isLoopbackDown = links.contains { $0.isLoopback && !$0.isUp }
    }

    /// The index of the interface of this name; `nil` when there is none.
    func index(named name: String) -> UInt32? {
        links.values.first { $0.name == name }?.index
    }

    /// Whether some interface has an address that may be sent from; `nil` when none has it at all. On the
    /// interface given, if it is there too: the same link-local address may stand on several.
    func isUsable(source: IPAddress, on interface: UInt32?) -> Bool? {
        func usable(on index: UInt32) -> Bool? {
            addresses[index]?.first { $0.address.bits == source.bits && $0.address.family == source.family }?
                .isUsable
        }
        if let interface, let answer = usable(on: interface) { return answer }
        return addresses.keys.sorted().lazy.compactMap(usable).first
    }

    /// The addresses that a name server elsewhere could be asked from. Links that come and go without one,
    /// like those of containers, change nothing.
    var waysOut: Set<InterfaceAddress> {
        let usable = addresses.values.joined().filter { address in
            guard let link = links[address.interface], !link.isLoopback, link.hasCarrier else { return false }
            return address.isUsable && !address.address.isLinkLocal
        }
        return Set(usable.map(\.withoutLifetimes))
    }

    /// Whether an interface can now carry packets that could not before. Ports of bridges, like the links of
    /// containers, carry none of this machine's own.
    func hasBetterLink(than before: InterfaceTable) -> Bool {
        links.values.contains { link in
            let isPort = link.master != nil && addresses[link.index] == nil
            return link.hasCarrier && !isPort && before.links[link.index]?.hasCarrier != true
        }
    }
}

extension InterfaceAddress {
    /// The address without the flags that router advertisements change back and forth.
    fileprivate var withoutLifetimes: InterfaceAddress {
        InterfaceAddress(interface: interface, address: address, flags: 0)
    }
}
