internal import Glibc
internal import NetwatchEventLoop
internal import Testing

@testable internal import NetwatchTransport

@Suite struct AddressRaceTests {
    private func order(_ addresses: String...) -> [String] {
        var race = AddressRace(addresses.compactMap { IPAddress($0) })
        var order: [String] = []
        while let address = race.next() { order.append("\(address)") }
        return order
    }

    @Test func `families take turns, beginning with the first address's`() {
        #expect(
            order("2001:db8::1", "2001:db8::2", "192.0.2.1", "2001:db8::3", "192.0.2.2")
                == ["2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2", "2001:db8::3"]
        )
        #expect(
            order("192.0.2.1", "2001:db8::1", "2001:db8::2", "2001:db8::3")
                == ["192.0.2.1", "2001:db8::1", "2001:db8::2", "2001:db8::3"]
        )
        #expect(order("192.0.2.1", "192.0.2.2") == ["192.0.2.1", "192.0.2.2"])
        #expect(order().isEmpty)
    }

    @Test func `what an address answered says more than that there was no way to another`() {
        var race = AddressRace([])
        #expect(race.verdict == nil)
        race.failed(SystemError(call: "connect", errno: ENETUNREACH))
        #expect(race.verdict?.errno == ENETUNREACH)
        race.failed(SystemError(call: "connect", errno: ECONNREFUSED))
        race.failed(SystemError(call: "connect", errno: ETIMEDOUT))
        #expect(race.verdict?.errno == ECONNREFUSED)
    }
}
