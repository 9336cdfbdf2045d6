internal import NetwatchEventLoop
internal import Testing

@testable internal import NetwatchNetlink
@testable internal import NetworkReachability

/// Interfaces and addresses that are replaced one by one.
@Suite struct InterfaceTableTests {
    private static func address(
        _ text: String,
        on interface: UInt32,
        flags: UInt32 = 0x80
    ) -> InterfaceAddress {
        InterfaceAddress(interface: interface, address: IPAddress(text)!, flags: flags)
    }

    private let table = InterfaceTable(
        links: [.fake(index: 1), .fake(index: 2)],
        addresses: [
            Self.address("192.0.2.1", on: 1), Self.address("2001:db8::1", on: 1),
            Self.address("192.0.2.2", on: 2),
        ]
    )

    @Test func `replacing the addresses of a family keeps the others and the kernel's order`() {
        var table = table
        let new = [Self.address("192.0.2.8", on: 1), Self.address("192.0.2.7", on: 1)]
        table.replace(.init(interface: 1, family: .ipv4), with: new)
        #expect(table.addresses[1] == new + [Self.address("2001:db8::1", on: 1)])
        table.replace(.init(interface: 1, family: .ipv6), with: [])
        #expect(table.addresses[1] == new)
        table.replace(.init(interface: 1, family: .ipv4), with: [])
        #expect(table.addresses[1] == nil)
        #expect(table.addresses[2] == self.table.addresses[2])
    }

    @Test func `a removed interface has no addresses`() {
        var table = table
        table.replaceLink(1, with: nil)
        #expect(table.links.keys.sorted() == [2])
        #expect(table.addresses.keys.sorted() == [2])
    }

    @Test func `replacing the loopback interface shows whether it is down`() {
        // IFF_LOOPBACK, and for the first one also IFF_UP, IFF_RUNNING and IFF_LOWER_UP
        let up = Link(index: 1, name: "lo", flags: 0x1_0049, operationalState: 0)
        let down = Link(index: 1, name: "lo", flags: 0x8, operationalState: 0)
        var table = table
        table.replaceLink(1, with: down)
        #expect(table.isLoopbackDown)
        table.replaceLink(2, with: .fake(index: 2, hasCarrier: false))
        #expect(table.isLoopbackDown)
        table.replaceLink(1, with: up)
        #expect(!table.isLoopbackDown)
        table.replaceLink(1, with: down)
        table.replaceLink(1, with: nil)
        #expect(!table.isLoopbackDown)
    }

    @Test func `an IPv6 address counts as routable while an interface has it`() {
        var table = table
        #expect(table.hasRoutableIPv6Address)
        let ipv6 = [Self.address("fe80::1", on: 1), Self.address("::1", on: 1)]
        table.replace(.init(interface: 1, family: .ipv6), with: ipv6)
        #expect(!table.hasRoutableIPv6Address)
        table.replace(.init(interface: 2, family: .ipv6), with: [Self.address("2001:db8::2", on: 2)])
        table.replace(.init(interface: 2, family: .ipv4), with: [])
        #expect(table.hasRoutableIPv6Address)
        table.replaceLink(2, with: nil)
        #expect(!table.hasRoutableIPv6Address)
        #expect(!InterfaceTable(addresses: ipv6).hasRoutableIPv6Address)
    }

    @Test func `an interface counts as better only if it gets a carrier`() {
        var down = table
        down.replaceLink(1, with: .fake(index: 1, hasCarrier: false))
        #expect(table.hasBetterLink(than: down, among: [1, 2]))
        #expect(!table.hasBetterLink(than: down, among: [2]))
        #expect(!down.hasBetterLink(than: table, among: [1, 2]))
        #expect(!table.hasBetterLink(than: table, among: [1, 2]))
    }

    @Test func `the outbound sources change with the carrier and with usable addresses`() {
        var changed = table
        changed.replaceLink(1, with: .fake(index: 1, name: "renamed"))
        #expect(changed.hasSameOutboundSources(as: table, among: [1, 2]))
        let tentative = Self.address("192.0.2.9", on: 2, flags: 0x40)
        changed.replace(.init(interface: 2, family: .ipv4), with: table.addresses[2]! + [tentative])
        #expect(changed.hasSameOutboundSources(as: table, among: [1, 2]))
        changed.replace(.init(interface: 2, family: .ipv4), with: [])
        #expect(!changed.hasSameOutboundSources(as: table, among: [1, 2]))
        changed = table
        changed.replaceLink(1, with: .fake(index: 1, hasCarrier: false))
        #expect(!changed.hasSameOutboundSources(as: table, among: [1]))
    }

    @Test(arguments: [("192.0.2.1", true), ("2001:db8::1", true), ("169.254.7.7", false), ("fe80::7", false)])
    func `a link-local address is not an outbound source`(address: String, isSource: Bool) {
        let without = InterfaceTable(links: [.fake(index: 1)])
        let with = InterfaceTable(links: [.fake(index: 1)], addresses: [Self.address(address, on: 1)])
        #expect(!without.hasOutboundSource)
        #expect(with.hasOutboundSource == isSource)
        #expect(with.hasSameOutboundSources(as: without, among: [1]) == !isSource)
    }

    @Test func `an event makes only its own interface, its addresses or the rules stale`() {
        var stale = StaleInterfaces()
        stale.mark(.route(.everything(.ipv4)))
        #expect(stale.isEmpty)
        stale.mark(.link(7))
        stale.mark(.address(interface: 8, .everything(.ipv6)))
        #expect(!stale.isEverything)
        #expect(stale.links == [7])
        #expect(stale.addresses == [.init(interface: 8, family: .ipv6)])
        #expect(stale.indices == [7, 8])
        #expect(!stale.rules)
        stale.mark(.rule)
        #expect(stale.rules)
        #expect(!stale.isEverything)
        stale.mark(.malformed)
        #expect(stale.isEverything)
    }
}
