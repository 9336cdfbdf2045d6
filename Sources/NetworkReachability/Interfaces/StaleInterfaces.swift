internal import NetwatchEventLoop
internal import NetwatchNetlink

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
