internal import NetwatchEventLoop
internal import NetwatchNetlink
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetworkReachability

/// The addresses that ``AddressBook`` marks, and the order in which it returns them.
@Suite struct AddressBookTests {
    private var book = AddressBook()
    private var targets: [String: WatchedTarget] = [:]
    private let now = BootInstant.now

    /// Watches addresses and gives each a verdict: reachable over the interface with this index, or no route if `nil`.
    private mutating func watch(_ addresses: [(String, UInt32?)]) {
        for (text, interface) in addresses {
            let key = WatchKey(target: .host(NetworkHost(text)!), options: PathOptions())
            let target = WatchedTarget(key, settle: .zero)
            targets[text] = target
            book.assign([IPAddress(text)!], to: target)
            _ = book.takeMarked(atMost: .max)
            _ = book.update(target.slots[0], addressVerdict(IPAddress(text)!, interface), now: now)
        }
    }

    private func addressVerdict(_ address: IPAddress, _ interface: UInt32?) -> AddressVerdict {
        guard let interface else { return AddressVerdict(.notReachable(.noRoute)) }
        let path = NetworkPath(
            destination: address,
            interface: .fake(interface),
            gateway: nil,
            source: nil,
            isLocal: false,
            prefixLength: 0,
            table: 254
        )
        var addressVerdict = AddressVerdict(.reachable(path))
        addressVerdict.interface = interface
        return addressVerdict
    }

    private mutating func marked(by event: NetlinkEvent) -> [String] {
        book.mark(event)
        return book.takeMarked(atMost: .max).map { "\($0.address)" }.sorted()
    }

    private static func prefix(_ text: String) -> IPPrefix {
        let parts = text.split(separator: "/")
        return IPPrefix(IPAddress(String(parts[0]))!, length: Int(parts[1])!)
    }

    @Test func `each kind of event marks the addresses that it may affect`() {
        var book = self
        book.watch([("10.0.0.1", 1), ("10.0.0.2", 2), ("10.1.0.1", 2), ("2001:db8::1", 1), ("10.9.0.1", nil)])
        let all = ["10.0.0.1", "10.0.0.2", "10.1.0.1", "10.9.0.1", "2001:db8::1"]
        #expect(book.marked(by: .route(Self.prefix("10.0.0.0/24"))) == ["10.0.0.1", "10.0.0.2"])
        #expect(book.marked(by: .route(Self.prefix("10.1.0.1/32"))) == ["10.1.0.1"])
        #expect(book.marked(by: .route(Self.prefix("10.2.0.0/16"))) == [])
        #expect(book.marked(by: .route(.everything(.ipv4))) == all.filter { !$0.contains(":") })
        #expect(book.marked(by: .route(.everything(.ipv6))) == ["2001:db8::1"])
        // 10.9.0.1 has no route, but may have one over any interface now.
        #expect(book.marked(by: .link(1)) == ["10.0.0.1", "10.9.0.1", "2001:db8::1"])
        #expect(
            book.marked(by: .address(interface: 3, Self.prefix("10.1.0.0/16"))) == ["10.1.0.1", "10.9.0.1"]
        )
        for event in [NetlinkEvent.rule, .nextHop, .setting, .malformed] {
            #expect(book.marked(by: event) == all)
        }
        #expect(book.marked(by: .irrelevant) == [])
    }

    @Test func `changed addresses are looked up before confirmations`() {
        var book = self
        book.watch([("10.0.0.1", 1), ("10.0.0.2", 1), ("10.0.0.3", 1)])
        book.book.markEverything(deferred: true)
        book.book.mark(.route(Self.prefix("10.0.0.2/32")))
        #expect(book.book.takeMarked(atMost: 10).map { "\($0.address)" } == ["10.0.0.2"])
        #expect(book.book.takeMarked(atMost: 10).count == 2)
        #expect(!book.book.hasMarks)
    }

    @Test func `addresses are looked up in order of marking, with a share for confirmations`() {
        var book = self
        let addresses = (0..<100).map { "10.0.\($0 / 10).\($0 % 10 + 1)" }
        book.watch(addresses.map { ($0, 1) })
        book.book.markEverything(deferred: true)
        for address in addresses.prefix(40) { book.book.mark(.route(Self.prefix("\(address)/32"))) }
        let turns = (0..<4).map { _ in book.book.takeMarked(atMost: 10).map { "\($0.address)" } }
        #expect(turns[0] == Array(addresses[0..<10]))
        #expect(turns[1] == Array(addresses[10..<20]))
        #expect(turns[2] == Array(addresses[20..<30]))
        // The fourth call returns deferred addresses. The first of them were urgent, too, and earlier calls have
        // already returned them.
        #expect(turns[3].allSatisfy { !addresses[30..<40].contains($0) || addresses[0..<10].contains($0) })
        var rest = Set(turns.joined())
        while book.book.hasMarks { rest.formUnion(book.book.takeMarked(atMost: 10).map { "\($0.address)" }) }
        #expect(rest == Set(addresses))
    }

    @Test func `an address with several watchers is looked up once and removed with the last watcher`() {
        var book = self
        book.watch([("10.0.0.1", 1)])
        let other = WatchedTarget(WatchKey(target: .general, options: PathOptions()), settle: .zero)
        book.book.assign([IPAddress("10.0.0.1")!], to: other)
        #expect(book.book.addresses.count == 1)
        #expect(book.marked(by: .rule) == ["10.0.0.1"])
        book.book.assign([], to: other)
        #expect(book.book.addresses.count == 1)
        book.book.assign([], to: book.targets["10.0.0.1"]!)
        #expect(book.book.addresses.count == 0)
        #expect(book.marked(by: .rule) == [])
    }

    private func watchers(_ slot: AddressBook.Slot, in book: AddressBook) -> [WatchedTarget] {
        var watchers: [WatchedTarget] = []
        book.forEachWatcher(of: slot) { watchers.append($0) }
        return watchers
    }

    /// Returns a target for an address and a port.
    private func target(_ address: String, port: UInt16) -> WatchedTarget {
        var options = PathOptions()
        options.port = port
        let key = WatchKey(target: .host(NetworkHost(address)!), options: options)
        return WatchedTarget(key, settle: .zero)
    }

    @Test(arguments: ["10.0.0.1", "2001:db8::1"])
    func `an address is looked up once for all ports, unless a rule depends on the port`(address: String) {
        var book = self
        _ = book.book.distinguishPorts(false, of: [])
        book.watch([(address, 1)])
        let ports = [443, 8080].map { target(address, port: $0) }
        for port in ports { book.book.assign([IPAddress(address)!], to: port) }
        let all = [book.targets[address]!] + ports
        #expect(Set(all.map(\.slots)).count == 1)
        let unmoved = book.book.distinguishPorts(false, of: all)
        #expect(unmoved.targets.isEmpty)

        let separated = book.book.distinguishPorts(true, of: all)
        #expect(separated.targets == ports)
        #expect(watchers(all[0].slots[0], in: book.book) == [all[0]])
        #expect(Set(all.map(\.slots)).count == 3)
        let marked = book.book.takeMarked(atMost: .max)
        #expect(Set(marked.map(\.options.options.port)) == [443, 8080])
        // Until the lookup, the last verdict applies.
        #expect(all.allSatisfy { book.book.verdict(at: $0.slots[0])?.isReachable == true })
        _ = book.book.update(ports[1].slots[0], AddressVerdict(.notReachable(.prohibited)), now: now)

        let joined = book.book.distinguishPorts(false, of: all)
        #expect(joined.targets == ports)
        #expect(Set(watchers(all[0].slots[0], in: book.book)) == Set(all))
        #expect(Set(all.map(\.slots)).count == 1)
        let markedAgain = book.book.takeMarked(atMost: .max)
        #expect(markedAgain.map(\.options.options.port) == [nil])
        #expect(book.book.verdict(at: ports[1].slots[0])?.isReachable == true)
        #expect(book.book.addresses.count == 1)
    }

    @Test func `the lookups because of the lifetime of a route continue when ports are distinguished`() {
        var book = AddressBook()
        _ = book.distinguishPorts(false, of: [])
        let target = target("2001:db8::1", port: 443)
        book.assign([IPAddress("2001:db8::1")!], to: target)
        _ = book.takeMarked(atMost: .max)
        var found = addressVerdict(IPAddress("2001:db8::1")!, 1)
        found.isRenewable = true
        _ = book.update(target.slots[0], found, now: now)
        _ = book.distinguishPorts(true, of: [target])
        _ = book.takeMarked(atMost: .max)
        let hasRenewable = book.markRenewable(now: now + RouteLifetimes.interval)
        #expect(hasRenewable && book.isMarked(target.slots))
    }

    @Test func `a route event marks exactly the current addresses`() {
        var book = AddressBook()
        var random = SeededGenerator(seed: 5)
        var watched: [IPAddress: WatchedTarget] = [:]
        for _ in 0..<2000 {
            let address = IPAddress(bytes: [
                10, 0, UInt8.random(in: 0...3, using: &random), .random(in: 0...255, using: &random),
            ])!
            if let target = watched.removeValue(forKey: address) {
                book.assign([], to: target)
            } else {
                let key = WatchKey(target: .host(NetworkHost("\(address)")!), options: PathOptions())
                watched[address] = WatchedTarget(key, settle: .zero)
                book.assign([address], to: watched[address]!)
            }
            _ = book.takeMarked(atMost: .max)
            let prefix = IPPrefix(address, length: Int.random(in: 22...32, using: &random))
            book.mark(.route(prefix))
            let found = Set(book.takeMarked(atMost: .max).map(\.address))
            #expect(found.isSuperset(of: watched.keys.filter(prefix.contains)))
            #expect(found.isSubset(of: watched.keys))
        }
    }
}
