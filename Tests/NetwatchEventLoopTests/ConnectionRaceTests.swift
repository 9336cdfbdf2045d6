internal import Glibc
internal import Testing

@testable internal import NetwatchEventLoop

@Suite struct ConnectionRaceTests {
    private func race(_ addresses: [String], preferring preferred: String? = nil) -> ConnectionRace {
        let candidates = addresses.compactMap { IPAddress($0) }.map { ConnectionCandidate($0) }
        return ConnectionRace(candidates, preferring: preferred.flatMap { IPAddress($0) })
    }

    /// Returns the order in which the addresses are tried if each attempt fails immediately.
    private func order(_ addresses: [String], preferring preferred: String? = nil) -> [String] {
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

    @Test func `the preferred address is tried first if the host still has it`() {
        let addresses = ["192.0.2.1", "192.0.2.2", "2001:db8::1"]
        #expect(order(addresses, preferring: "2001:db8::1") == ["2001:db8::1", "192.0.2.1", "192.0.2.2"])
        #expect(order(addresses, preferring: "192.0.2.9") == ["192.0.2.1", "2001:db8::1", "192.0.2.2"])
    }

    @Test func `eight attempts run concurrently, and the ninth replaces the oldest`() {
        var race = race((1...10).map { "192.0.2.\($0)" })
        var replaced: [Int?] = []
        while case .connect(_, _, let oldest) = race.next() { replaced.append(oldest) }
        #expect(replaced == Array(repeating: nil, count: 8) + [0, 1])
        #expect(race.next() == .wait)
    }

    @Test func `of sixty-four addresses half are tried, and the failure counts the others`() {
        var race = race((1...64).map { "192.0.2.\($0)" })
        var count = 0
        while case .connect = race.next() { count += 1 }
        #expect(count == ConnectionRace.maximumAddresses)
        #expect("\(race.failure)".hasSuffix("32 more were not tried"))
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
        #expect(ConnectionFailure(attempts: attempts, untried: 0).verdict?.errno == verdict)
    }
}
