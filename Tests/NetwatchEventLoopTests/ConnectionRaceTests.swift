internal import Glibc
internal import Testing

@testable internal import NetwatchEventLoop

@Suite struct ConnectionRaceTests {
    private func race(_ addresses: [String], preferring preferred: [String] = []) -> ConnectionRace {
        let candidates = addresses.compactMap { IPAddress($0) }.map { ConnectionCandidate($0) }
        return ConnectionRace(candidates, preferring: preferred.compactMap { IPAddress($0) })
    }

    /// Returns the order in which the addresses are tried if each attempt fails immediately.
    private func order(_ addresses: [String], preferring preferred: [String] = []) -> [String] {
        var race = race(addresses, preferring: preferred)
        var order: [String] = []
        while case .connect(let number, let candidate, _) = race.next() {
            order.append("\(candidate.address)")
            race.failed(number, SystemError(call: "connect", errno: ECONNREFUSED))
        }
        return order
    }

    @Test func `the families alternate, starting with that of the first address`() {
        #expect(
            order(["2001:db8::1", "2001:db8::2", "192.0.2.1", "2001:db8::3", "192.0.2.2"])
                == ["2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2", "2001:db8::3"]
        )
        #expect(
            order(["192.0.2.1", "2001:db8::1", "2001:db8::2", "2001:db8::3"])
                == ["192.0.2.1", "2001:db8::1", "2001:db8::2", "2001:db8::3"]
        )
        #expect(order(["192.0.2.1", "192.0.2.2"]) == ["192.0.2.1", "192.0.2.2"])
        #expect(order([]).isEmpty)
    }

    @Test func `preferred addresses are tried first, in their order, if the host still has them`() {
        let addresses = ["192.0.2.1", "192.0.2.2", "2001:db8::1"]
        #expect(order(addresses, preferring: ["2001:db8::1"]) == ["2001:db8::1", "192.0.2.1", "192.0.2.2"])
        #expect(order(addresses, preferring: ["192.0.2.9"]) == ["192.0.2.1", "2001:db8::1", "192.0.2.2"])
        #expect(
            order(addresses, preferring: ["192.0.2.2", "192.0.2.9", "192.0.2.1"])
                == ["192.0.2.2", "192.0.2.1", "2001:db8::1"]
        )
    }

    @Test func `eight attempts run concurrently, and the ninth replaces the oldest`() {
        var race = race((1...10).map { "192.0.2.\($0)" })
        var replaced: [Int?] = []
        while case .connect(_, _, let oldest) = race.next() { replaced.append(oldest) }
        #expect(replaced == Array(repeating: nil, count: 8) + [0, 1])
        #expect(race.next() == .wait)
    }

    @Test func `every address of a host is tried`() {
        let addresses = (1...ResolverTimes.maximumAddresses).map { "192.0.2.\($0)" }
        #expect(order(addresses) == addresses)
    }

    @Test func `the failure counts the addresses that were not tried`() {
        var race = race((1...40).map { "192.0.2.\($0)" })
        for _ in 1...30 { _ = race.next() }
        #expect("\(race.failure)".hasSuffix("192.0.2.30: no answer; 10 more were not tried"))
    }

    @Test func `the next race begins with the untried addresses, and ends with those that refused`() {
        var race = race((1...5).map { "192.0.2.\($0)" })
        for _ in 1...3 { _ = race.next() }
        race.failed(0, SystemError(call: "connect", errno: ECONNREFUSED))
        #expect(race.failure.resumption.map(\.description).map { $0.suffix(1) } == ["4", "5", "2", "3"])
    }

    @Test func `the next race begins as usual if all addresses were tried`() {
        var race = race(["192.0.2.1", "192.0.2.2"])
        for _ in 1...2 { _ = race.next() }
        #expect(race.failure.resumption.isEmpty)
    }

    @Test func `even if each race has time for a few addresses only, each address is the first one once`() {
        let addresses = (1...64).map { "192.0.2.\($0)" }
        var preferred: [String] = []
        var first: Set<String> = []
        for _ in addresses {
            var race = race(addresses, preferring: preferred)
            for _ in 1...7 { _ = race.next() }
            first.insert("\(race.failure.attempts[0].address)")
            preferred = race.failure.resumption.map(\.description)
        }
        #expect(first == Set(addresses))
    }

    @Test func `the failure lists each address, including those that did not answer`() {
        var race = race(["192.0.2.1", "192.0.2.2", "192.0.2.3"])
        while case .connect = race.next() {}
        race.failed(1, SystemError(call: "connect", errno: ECONNREFUSED))
        race.failed(2, SystemError(call: "socket", errno: EMFILE))
        #expect(
            "\(race.failure)"
                == "192.0.2.1: no answer; 192.0.2.2: Connection refused; 192.0.2.3: socket: Too many open files"
        )
    }

    @Test(
        arguments: [
            ([], nil),
            ([ENETUNREACH], ENETUNREACH),
            ([ENETUNREACH, ECONNREFUSED, ETIMEDOUT], ECONNREFUSED),
            ([ECONNREFUSED, EMFILE], EMFILE),
        ] as [([CInt], CInt?)]
    )
    func `the verdict prefers a local shortage, then an address's answer, then a missing route`(
        errors: [CInt],
        verdict: CInt?
    ) {
        let attempts = errors.map {
            ConnectionAttempt(
                address: IPAddress("192.0.2.1")!,
                error: SystemError(call: "connect", errno: $0)
            )
        }
        #expect(ConnectionFailure(attempts: attempts, untried: []).verdict?.errno == verdict)
    }
}
