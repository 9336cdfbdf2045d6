internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchNetlink

/// Compares the kernel filter with its definition: a notification of a route passes if the route covers a watched
/// address.
@Suite struct EventFilterTests {
    /// A generator of random addresses and routes that are close together, so that many routes cover an address.
    private struct Draw {
        var random: SeededGenerator

        mutating func address() -> IPAddress {
            Bool.random(using: &random)
                ? IPAddress(bytes: [10, byte(3), byte(7), byte(255)])!
                : IPAddress(
                    bytes: [0x20, 0x01, 0x0d, 0xb8, byte(1), byte(3)] + (0..<10).map { _ in byte(1) }
                )!
        }

        mutating func route() -> IPPrefix {
            let address = address()
            return IPPrefix(address, length: Int.random(in: 6...address.family.bitWidth, using: &random))
        }

        private mutating func byte(_ last: UInt8) -> UInt8 {
            UInt8.random(in: 0...last, using: &random)
        }
    }

    /// Adds the routes in a new namespace, and returns those of which a filtered socket receives a notification.
    private func received(_ routes: [IPPrefix], watching addresses: [IPAddress]) throws -> Set<IPPrefix> {
        let namespace = try NetworkNamespace()
        let batch = routes.map { "route add \($0) dev lo table 7" }.joined(separator: "\n")
        return try namespace.run {
            Result {
                let socket = try EventSocket(receiveBufferSize: 8 << 20)
                try socket.attach(EventFilter(covering: addresses))
                try shell("ip -batch - <<'END'\n\(batch)\nEND")
                let events = try socket.drain().events
                return Set(events.compactMap { if case .route(let prefix) = $0 { prefix } else { nil } })
            }
        }.get()
    }

    @Test(.needsNetworkNamespaces, arguments: UInt64(1)...12)
    func `only routes that cover a watched address pass the filter`(seed: UInt64) throws {
        var draw = Draw(random: SeededGenerator(seed: seed))
        let addresses = (0..<40).map { _ in draw.address() }
        let routes = Set((0..<300).map { _ in draw.route() })
        let expected = routes.filter { route in addresses.contains(where: route.contains) }
        #expect(try received(Array(routes), watching: addresses) == expected)
        #expect(!expected.isEmpty && expected.count < routes.count)
    }

    @Test(.needsNetworkNamespaces)
    func `with too many addresses, routes near them also pass, but not distant ones`()
        throws
    {
        let addresses = (0..<20_000).map { IPAddress(bytes: [10, 1, UInt8($0 / 256), UInt8($0 % 256)])! }
        let near = [
            IPPrefix(IPAddress("10.1.0.0")!, length: 16), IPPrefix(IPAddress("10.1.78.31")!, length: 32),
        ]
        let far = [
            IPPrefix(IPAddress("172.16.0.0")!, length: 12), IPPrefix(IPAddress("2001:db8::")!, length: 32),
        ]
        #expect(try received(near + far, watching: addresses) == Set(near))
    }

    @Test(.needsNetworkNamespaces)
    func `a default route passes when nothing is watched`() throws {
        let routes = IPAddress.Family.allCases.map(IPPrefix.everything)
        #expect(try received(routes, watching: []) == Set(routes))
        #expect(try received([IPPrefix(IPAddress("10.0.0.0")!, length: 8)], watching: []).isEmpty)
    }

    @Test func `the prefixes of a cover contain all addresses, stay within the budget and do not overlap`() {
        var draw = Draw(random: SeededGenerator(seed: 1))
        let addresses = (0..<2000).map { _ in draw.address() }
        for family in IPAddress.Family.allCases {
            let own = addresses.filter { $0.family == family }
            let cover = PrefixCover(addresses: own.map(\.bits), family: family)
            for budget in [1, 2, 7, 64, 5000] {
                let prefixes = cover.prefixes(atMost: budget)
                #expect(prefixes.count <= budget)
                #expect(own.allSatisfy { address in prefixes.contains { $0.contains(address) } })
                #expect(zip(prefixes, prefixes.dropFirst()).allSatisfy { $0.lastBits < $1.firstBits })
            }
            #expect(cover.prefixes(atMost: 5000).allSatisfy { $0.length == family.bitWidth })
        }
    }
}
