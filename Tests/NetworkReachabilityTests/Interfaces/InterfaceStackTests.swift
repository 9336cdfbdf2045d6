internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchNetlink
@testable internal import NetworkReachability

@Suite struct InterfaceStackTests {
    /// Returns the stack of these links. `types` replaces what sysfs would report for them.
    private func stack(_ entries: [(Link, InterfaceType)]) -> InterfaceStack {
        InterfaceStack(
            links: Dictionary(uniqueKeysWithValues: entries.map { ($0.0.index, $0.0) }),
            types: Dictionary(uniqueKeysWithValues: entries.map { ($0.0.index, $0.1) })
        )
    }

    private func medium(
        of index: UInt32,
        defaultRoutes: Set<UInt32> = [],
        _ entries: [(Link, InterfaceType)]
    ) -> InterfaceType? {
        stack(entries).describe(index, addresses: [], hasDefaultRoute: defaultRoutes.contains)?.medium
    }

    @Test func `the medium of a VLAN or macvlan is that of its lower link`() {
        let links: [(Link, InterfaceType)] = [
            (.fake(index: 1), .wifi),
            (.fake(index: 2, lowerLink: 1), .vlan),
            (.fake(index: 3, lowerLink: 2), .macvlan),
        ]
        #expect(medium(of: 3, links) == .wifi)
        #expect(medium(of: 1, links) == .wifi)
    }

    @Test func `a lower link in another namespace or without an interface is ignored`() {
        let links: [(Link, InterfaceType)] = [
            (.fake(index: 1), .cellular),
            (.fake(index: 2, lowerLink: 1, lowerIsInOtherNamespace: true), .macvlan),
            (.fake(index: 3, lowerLink: 99), .vlan),
            (.fake(index: 4, lowerLink: 1, lowerIsInOtherNamespace: true), .tunnel),
        ]
        #expect(medium(of: 2, links) == .macvlan)
        #expect(medium(of: 3, links) == .vlan)
        #expect(medium(of: 4, defaultRoutes: [1], links) == .tunnel)
    }

    @Test func `the peer of a veth is not its lower link`() {
        let links: [(Link, InterfaceType)] = [
            (.fake(index: 1, lowerLink: 2), .veth), (.fake(index: 2, lowerLink: 1), .veth),
        ]
        #expect(stack(links).layers(from: 1) { _ in true } == [1])
    }

    @Test func `a bridge has the medium of the port that leads out of the machine`() {
        let links: [(Link, InterfaceType)] = [
            (.fake(index: 1), .bridge),
            (.fake(index: 2, master: 1), .veth),
            (.fake(index: 3, master: 1, hasCarrier: false), .wifi),
        ]
        #expect(medium(of: 1, links) == .wifi)
    }

    @Test func `a bond has the medium of its oldest port with carrier`() {
        func links(_ first: Bool, _ second: Bool) -> [(Link, InterfaceType)] {
            [
                (.fake(index: 1), .bond),
                (.fake(index: 2, master: 1, hasCarrier: first), .ethernet),
                (.fake(index: 3, master: 1, hasCarrier: second), .cellular),
            ]
        }
        #expect(medium(of: 1, links(false, true)) == .cellular)
        #expect(medium(of: 1, links(true, true)) == .ethernet)
        #expect(medium(of: 1, links(false, false)) == .ethernet)
    }

    @Test func `a bridge without ports is its own medium`() {
        #expect(medium(of: 1, [(.fake(index: 1), .bridge)]) == .bridge)
    }

    @Test func `a cycle in an inconsistent table does not cause an endless loop`() {
        let links: [(Link, InterfaceType)] = [
            (.fake(index: 1, lowerLink: 2), .vlan),
            (.fake(index: 2, lowerLink: 1), .vlan),
            (.fake(index: 3, master: 3), .bridge),
            (.fake(index: 4, lowerLink: 4), .macvlan),
        ]
        #expect(stack(links).layers(from: 1) { _ in true } == [1, 2])
        #expect(stack(links).layers(from: 3) { _ in true } == [3])
        #expect(stack(links).layers(from: 4) { _ in true } == [4])
    }

    // MARK: Tunnels

    @Test func `a tunnel has the medium of its lower link`() {
        let links: [(Link, InterfaceType)] = [
            (.fake(index: 1), .ethernet), (.fake(index: 2), .cellular),
            (.fake(index: 3, lowerLink: 2), .tunnel),
        ]
        #expect(medium(of: 3, defaultRoutes: [1, 2], links) == .cellular)
    }

    @Test func `a tunnel without a lower link has the medium of the interface with a default route`() {
        let links: [(Link, InterfaceType)] = [
            (.fake(index: 1), .loopback), (.fake(index: 2), .ethernet), (.fake(index: 3), .wifi),
            (.fake(index: 4), .tunnel), (.fake(index: 5), .tunnel),
        ]
        #expect(medium(of: 4, defaultRoutes: [1, 3, 4, 5], links) == .wifi)
        #expect(medium(of: 4, defaultRoutes: [4, 5], links) == .tunnel)
    }

    @Test func `if several interfaces have a default route, a wired one is preferred, then the oldest`() {
        let links: [(Link, InterfaceType)] = [
            (.fake(index: 1), .cellular), (.fake(index: 2), .wifi), (.fake(index: 9), .tunnel),
            (.fake(index: 3, hasCarrier: false), .ethernet),
            (.fake(index: 5), .bridge), (.fake(index: 4, master: 5), .ethernet), (.fake(index: 6), .ethernet),
        ]
        let stack = stack(links)
        #expect(stack.layers(from: 9) { _ in true } == [9, 5, 4])
        #expect(stack.layers(from: 9) { $0 != 5 } == [9, 6])
        #expect(stack.layers(from: 9) { $0 < 5 } == [9, 2])
    }

    @Test func `an interface on top of a tunnel counts as a tunnel and has the tunnel's medium`() throws {
        let links: [(Link, InterfaceType)] = [
            (.fake(index: 1), .wifi), (.fake(index: 2, master: 3, lowerLink: 1), .tunnel),
            (.fake(index: 3), .bridge),
        ]
        let bridge = try #require(stack(links).describe(3, addresses: []) { _ in false })
        #expect(bridge.isTunnel)
        #expect(bridge.medium == .wifi)
        #expect(stack(links).describe(1, addresses: []) { _ in false }?.isTunnel == false)
    }

    // MARK: Description

    @Test func `the description of an interface contains its usable addresses`() throws {
        let good = IPAddress("192.0.2.1")!
        let addresses = [
            InterfaceAddress(interface: 1, address: good, prefixLength: 24, flags: 0x80),
            InterfaceAddress(interface: 1, address: IPAddress("2001:db8::1")!, flags: 0xc0),
        ]
        let assigned = addresses.map(NetworkInterface.AssignedAddress.init)
        let stack = stack([(.fake(index: 2), .ethernet), (.fake(index: 1, name: "wwan0"), .cellular)])
        let all = stack.describeAll(addresses: [1: assigned]) { _ in false }
        #expect(all.map(\.index) == [1, 2])
        let modem = try #require(all.first)
        #expect(modem.addresses == [good])
        #expect(modem.assignedAddresses.first?.prefixLength == 24)
        #expect(modem.assignedAddresses.map(\.isUsable) == [true, false])
        #expect(modem.name == "wwan0")
        #expect(modem.mtu == 1500)
        #expect(modem.isUp && modem.hasCarrier && !modem.isTunnel)
        #expect(stack.describe(77, addresses: []) { _ in false } == nil)
    }

    @Test(arguments: InterfaceType.allCases)
    func `only mobile networks count as metered and as WWAN`(type: InterfaceType) {
        let isMobile = type == .cellular
        let isHere = type == .loopback
        #expect(NetworkInterface.Metered(medium: type) == (isMobile ? .yes : isHere ? .no : .unknown))
        #expect(
            NetworkReachabilityManager.ConnectionType(medium: type) == (isMobile ? .wwan : .ethernetOrWiFi)
        )
    }
}
