internal import NetwatchEventLoop
internal import Testing

@testable internal import NetworkReachability
@testable internal import netwatch

@Suite struct NetworkDifferenceTests {
    private func address(_ text: String, isUsable: Bool = true) -> NetworkInterface.AssignedAddress {
        .init(address: IPAddress(text)!, prefixLength: 24, isUsable: isUsable)
    }

    private func interface(
        index: UInt32 = 2,
        name: String = "eth0",
        hasCarrier: Bool = true,
        mtu: Int = 1500,
        _ addresses: [NetworkInterface.AssignedAddress] = []
    ) -> NetworkInterface {
        NetworkInterface(
            index: index,
            name: name,
            type: .ethernet,
            medium: .ethernet,
            isUp: true,
            hasCarrier: hasCarrier,
            isTunnel: false,
            assignedAddresses: addresses,
            mtu: mtu,
            metered: .unknown
        )
    }

    @Test func `at the beginning everything is present, interfaces first`() {
        let (first, second) = (address("192.0.2.1"), address("192.0.2.2"))
        let eth0 = interface([address("2001:db8::1"), second, first])
        let eth1 = interface(index: 3, name: "eth1")
        #expect(
            [eth0, eth1].differences(from: nil) == [
                .init(change: .present, interface: eth0), .init(change: .present, interface: eth1),
                .init(change: .present, interface: eth0, address: first),
                .init(change: .present, interface: eth0, address: second),
                .init(change: .present, interface: eth0, address: address("2001:db8::1")),
            ]
        )
    }

    @Test func `only visible changes are differences`() {
        let before = [interface([address("192.0.2.1")])]
        #expect([interface(mtu: 1400, [address("192.0.2.1")])].differences(from: before) == [])
        for changed in [
            interface(hasCarrier: false, before[0].assignedAddresses),
            interface(name: "uplink", before[0].assignedAddresses),
        ] {
            #expect([changed].differences(from: before) == [.init(change: .changed, interface: changed)])
        }
    }

    @Test func `a new address is added, and becomes usable`() {
        let (bare, usable) = (interface(), interface([address("2001:db8::1")]))
        let tentative = interface([address("2001:db8::1", isUsable: false)])
        #expect(
            [tentative].differences(from: [bare]) == [
                .init(change: .added, interface: tentative, address: tentative.assignedAddresses[0])
            ]
        )
        #expect(
            [usable].differences(from: [tentative]) == [
                .init(change: .changed, interface: usable, address: usable.assignedAddresses[0])
            ]
        )
    }

    @Test func `addresses are removed before their interface`() {
        let gone = interface([address("192.0.2.1")])
        #expect(
            [NetworkInterface]().differences(from: [gone]) == [
                .init(change: .removed, interface: gone, address: address("192.0.2.1")),
                .init(change: .removed, interface: gone),
            ]
        )
    }
}
