internal import NetwatchEventLoop
internal import NetwatchNetlink

/// The interfaces and their addresses at one moment.
struct InterfaceTable: Hashable, Sendable {
    private(set) var links: [UInt32: Link]
    /// The addresses of each interface that has any, in the kernel's order: IPv4 before IPv6.
    private(set) var addresses: [UInt32: [InterfaceAddress]]
    /// Whether a loopback interface exists but is down. The machine cannot reach itself then.
    private(set) var isLoopbackDown: Bool
    /// The interfaces with an IPv6 address that is neither link-local nor `::1`.
    private var routableIPv6: Set<UInt32>
    /// The description of each interface, by index. Set by ``PathReader`` after the types have been determined.
    var descriptions: [UInt32: NetworkInterface] = [:]

    init(links: [Link] = [], addresses: [InterfaceAddress] = []) {
        self.links = Dictionary(links.map { ($0.index, $0) }) { _, last in last }
        self.addresses = Dictionary(grouping: addresses, by: \.interface)
        isLoopbackDown = links.contains { $0.isLoopback && !$0.isUp }
        routableIPv6 = Set(addresses.lazy.filter(\.isRoutableIPv6).map(\.interface))
    }

    /// Replaces the interface with an index. Without a new one, its addresses are removed, too.
    mutating func replaceLink(_ index: UInt32, with link: Link?) {
        let concernsLoopback = [links[index], link].contains { $0?.isLoopback == true }
        links[index] = link
        if link == nil { setAddresses([], of: index) }
        // Other links are not examined, because a burst of notifications may replace thousands of links one by one.
        guard concernsLoopback else { return }
        isLoopbackDown = links.values.contains { $0.isLoopback && !$0.isUp }
    }

    /// Replaces the addresses of one family of an interface.
    mutating func replace(_ replaced: StaleInterfaces.Addresses, with new: [InterfaceAddress]) {
        let others = (addresses[replaced.interface] ?? []).filter { $0.address.family != replaced.family }
        setAddresses(replaced.family == .ipv4 ? new + others : others + new, of: replaced.interface)
    }

    private mutating func setAddresses(_ all: [InterfaceAddress], of interface: UInt32) {
        addresses[interface] = all.isEmpty ? nil : all
        if all.contains(where: \.isRoutableIPv6) {
            routableIPv6.insert(interface)
        } else {
            routableIPv6.remove(interface)
        }
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

    /// Whether an interface has an IPv6 address that is neither link-local nor `::1`.
    var hasRoutableIPv6Address: Bool { !routableIPv6.isEmpty }

    /// Returns whether these interfaces have the same addresses as before from which a remote name server can be
    /// queried: usable, not link-local (`fe80::/10`, `169.254.0.0/16`), not on loopback, and on an interface with
    /// carrier.
    ///
    /// The `veth` interfaces of containers usually have no such address, so nothing changes when a container starts or
    /// stops.
    func hasSameOutboundSources(as before: InterfaceTable, among indices: Set<UInt32>) -> Bool {
        indices.allSatisfy { index in
            // Equal arrays usually share their storage, so comparing them takes no time.
            let isUnchanged =
                isOutbound(index) == before.isOutbound(index) && addresses[index] == before.addresses[index]
            return isUnchanged || outboundSources(on: index) == before.outboundSources(on: index)
        }
    }

    /// Whether any interface has an address from which a remote name server can be queried.
    var hasOutboundSource: Bool {
        addresses.contains { index, addresses in
            isOutbound(index) && addresses.contains(where: \.isUsableBeyondLink)
        }
    }

    private func outboundSources(on index: UInt32) -> Set<InterfaceAddress> {
        guard isOutbound(index), let addresses = addresses[index] else { return [] }
        return Set(addresses.lazy.filter(\.isUsableBeyondLink).map(\.withoutLifetimes))
    }

    private func isOutbound(_ index: UInt32) -> Bool {
        guard let link = links[index] else { return false }
        return !link.isLoopback && link.hasCarrier
    }

    /// Returns whether any of these interfaces has a carrier now that it did not have before.
    ///
    /// A port of a bridge or bond does not count if it has no address, because it carries no packets of this machine
    /// itself. The link of a container is an example.
    func hasBetterLink(than before: InterfaceTable, among indices: Set<UInt32>) -> Bool {
        indices.contains { index in
            guard let link = links[index], link.hasCarrier else { return false }
            let isPort = link.master != nil && addresses[index] == nil
            return !isPort && before.links[index]?.hasCarrier != true
        }
    }
}

extension InterfaceAddress {
    fileprivate var isRoutableIPv6: Bool {
        address.family == .ipv6 && !address.isLinkLocal && !address.isLoopback
    }

    /// Whether packets from the address can reach hosts beyond the link. A machine gives itself a link-local IPv4
    /// address if DHCP fails (RFC 3927).
    fileprivate var isUsableBeyondLink: Bool {
        isUsable && !address.isLinkLocal && !address.isIPv4LinkLocal
    }

    /// The address without its flags. Router advertisements can change the flags, which does not affect reachability.
    fileprivate var withoutLifetimes: InterfaceAddress {
        InterfaceAddress(interface: interface, address: address, flags: 0)
    }
}

/// What must be read again of the interfaces, their addresses and the policy rules, because it may have changed. A pure
/// value.
struct StaleInterfaces: Hashable, Sendable {
    /// The addresses of one family of one interface.
    struct Addresses: Hashable, Sendable {
        let interface: UInt32
        let family: IPAddress.Family
    }

    /// Whether all interfaces, addresses and rules must be read.
    private(set) var isEverything = false
    /// The indices of the interfaces that must be read, without their addresses.
    private(set) var links: Set<UInt32> = []
    private(set) var addresses: Set<Addresses> = []
    /// Whether the policy rules must be read.
    private(set) var rules = false

    static let everything: StaleInterfaces = {
        var stale = StaleInterfaces()
        stale.markEverything()
        return stale
    }()

    var isEmpty: Bool { !isEverything && links.isEmpty && addresses.isEmpty && !rules }

    /// The interfaces to which the links and addresses belong.
    var indices: Set<UInt32> { links.union(addresses.map(\.interface)) }

    mutating func markEverything() {
        isEverything = true
    }

    mutating func mark(_ addresses: Addresses) {
        self.addresses.insert(addresses)
    }

    /// Marks what a kernel notification is about.
    ///
    /// The kernel announces most changes of addresses themselves, so a change of a link does not mark the addresses of
    /// the link. The confirmation, which reads everything, finds the others. For example, an IPv6 address that is kept
    /// while its link is down (`keep_addr_on_down`) becomes tentative without a notification.
    mutating func mark(_ event: NetlinkEvent) {
        switch event {
        case .link(let index): links.insert(index)
        case .address(let index, let prefix): mark(Addresses(interface: index, family: prefix.family))
        case .rule: rules = true
        case .malformed: markEverything()
        case .route, .nextHop, .setting, .irrelevant: break
        }
    }
}
