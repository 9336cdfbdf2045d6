internal import Testing

@testable internal import OfflineQueue

@Suite struct RateLimitTests {
    @Test(
        arguments: [
            ("10/s", nil, 10, 10), ("example.com=30/m", "example.com", 0.5, 1),
            ("2.5/s,burst=20", nil, 2.5, 20),
            ("::1=3600/h,burst=1", "::1", 1, 1),
        ] as [(String, String?, Double, Int)]
    )
    func `a rate limit is parsed`(text: String, host: String?, rate: Double, burst: Int) throws {
        let limit = try RateLimit(parsing: text)
        #expect(limit.host == host && limit.requestsPerSecond == rate && limit.burst == burst)
    }

    @Test(arguments: [
        "", "10", "0/s", "-1/s", "10/d", "=1/s", "a b=1/s", "1/s,burst=0", "1/s,burst=x", "1/s,2", "nan/s",
        "1e9/s", "a:80=1/s", "[::1]=1/s", "https://a=1/s", "*.example.com=1/s", "*=1/s",
        "1/s,burst=1,burst=1", "inf/s",
    ])
    func `a text that is no rate limit is refused`(text: String) {
        let error = #expect(throws: QueueError.self) { try RateLimit(parsing: text) }
        #expect(error?.code == .invalidConfiguration)
    }

    /// A network whose servers respond after 50 ms.
    struct Servers: SimulatedNetwork {
        private(set) var arrivals: [String: [Moment]] = [:]
        private(set) var byLane: [Int64: Int] = [:]

        mutating func reply(to arrival: FleetArrival) -> (effect: LaneEffect, after: Duration) {
            arrivals[arrival.lane.origin.host, default: []].append(arrival.at)
            byLane[arrival.lane.id, default: 0] += 1
            return (.healthy, .milliseconds(50))
        }

        mutating func ended(_ arrival: FleetArrival, _ effect: LaneEffect, now: Moment) {}
    }

    private func lane(_ id: Int64, _ host: String, _ label: String = "") -> Scheduler.LaneInfo {
        let origin = Origin(scheme: "https", host: host, port: 443)
        return Scheduler.LaneInfo(id: id, origin: origin, label: label, mode: .parallel)
    }

    /// Returns the network after all requests were delivered.
    private func run(
        _ rows: [(lane: Scheduler.LaneInfo, count: Int)],
        until end: Moment = .seconds(36_000),
        _ adjust: (inout Scheduler.Settings) throws -> Void
    ) rethrows -> Servers {
        var settings = Scheduler.Settings()
        try adjust(&settings)
        var fleet = FleetSimulation(Servers())
        fleet.addQueue(settings, seed: 1, lanes: rows.map(\.lane), gate: .reachable(generation: 1))
        for (lane, count) in rows { fleet.enqueue(count, lane: lane.id, at: .zero) }
        fleet.run(until: end)
        if end == .seconds(36_000) { #expect(fleet.unfinished == 0) }
        return fleet.network
    }

    /// Returns whether no interval contains more requests than the limit permits.
    private func keeps(_ limit: RateLimit, _ arrivals: [Moment]) -> Bool {
        arrivals.indices.allSatisfy { first in
            arrivals.indices[first...].allSatisfy { last in
                let elapsed = (arrivals[last] - arrivals[first]) / .seconds(1)
                let permitted = Double(limit.burst) + elapsed * limit.requestsPerSecond
                return Double(last - first + 1) <= permitted + 1e-6
            }
        }
    }

    @Test(arguments: ["5/s,burst=1", "5/s", "5/s,burst=40"])
    func `requests to a host keep its rate, use all of it, and do not slow down other hosts`(text: String)
        throws
    {
        let limit = try RateLimit(parsing: "a=" + text)
        let network = try run([(lane(1, "a"), 200), (lane(2, "a", "other"), 100), (lane(3, "b"), 300)]) {
            $0.rates = [try RateLimit(parsing: "a=" + text)]
        }
        let (limited, free) = (network.arrivals["a"]!, network.arrivals["b"]!)
        #expect(limited.count == 300 && keeps(limit, limited))
        #expect(limited.last! <= .milliseconds((300 - limit.burst) * 200 + 250), "no time is lost")
        #expect(free.count == 300 && free.last! <= .seconds(3))
    }

    @Test func `a host that waits long for its rate does not delay the others under a common rate`() throws {
        let network = try run([(lane(1, "slow"), 2), (lane(2, "fast"), 10)], until: .seconds(60)) {
            $0.rates = [try RateLimit(parsing: "1/s"), try RateLimit(parsing: "slow=1/h")]
        }
        #expect(network.arrivals["fast"]?.count == 10 && network.arrivals["slow"]?.count == 1)
    }

    @Test func `requests to all hosts together keep the rate`() throws {
        let limit = try RateLimit(10, burst: 3)
        let network = run([(lane(1, "a"), 50), (lane(2, "b"), 50), (lane(3, "c"), 50)]) { $0.rates = [limit] }
        let all = network.arrivals.values.joined().sorted()
        #expect(all.count == 150 && keeps(limit, all))
        #expect(all.last! <= .seconds(15))
        let counts = network.arrivals.mapValues { $0.count { $0 < .seconds(6) } }
        #expect(counts.values.allSatisfy { (18...23).contains($0) }, "\(counts)")
    }

    @Test
    func
        `a lane that waits for its rate reports so, and the scheduler wakes at the time of the next request`()
        throws
    {
        var settings = Scheduler.Settings()
        settings.rates = [try RateLimit(2, to: "a", burst: 1)]
        var scheduler = Scheduler(settings: settings, seed: 1)
        _ = scheduler.handle(.rows(lane(1, "a"), due: .zero), now: .zero)
        let first = scheduler.handle(.gate(.https("a"), .reachable(generation: 1)), now: .zero)
        #expect(first.count { if case .claim = $0 { true } else { false } } == 1)
        _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: .zero), now: .zero)
        #expect(scheduler.waitReason(ofLane: 1, now: .zero) == .rateLimited)
        #expect(scheduler.nextWake(now: .zero) == .milliseconds(500))
        #expect(scheduler.handle(.wake, now: .milliseconds(499)).isEmpty)
        #expect(scheduler.claimNext(lane: 1, after: .healthy, now: .milliseconds(499)) == nil)
        let second = scheduler.handle(.wake, now: .milliseconds(500))
        #expect(second.count { if case .claim = $0 { true } else { false } } == 1)
        _ = scheduler.handle(.claimed(lane: 1, taken: 0, due: .seconds(1)), now: .milliseconds(500))
        #expect(scheduler.waitReason(ofLane: 1, now: .milliseconds(500)) == nil, "the claim found no request")
        let third = scheduler.handle(.rows(lane(1, "a"), due: .zero), now: .milliseconds(500))
        #expect(third.count { if case .claim = $0 { true } else { false } } == 1, "so it gave its turn back")
    }

    @Test func `turns that are given back after a pause do not exceed the burst`() throws {
        var limiter = RateLimiter(try RateLimit(1, burst: 5))
        func sendAll(now: Moment) -> Int {
            var sent = 0
            while limiter.opensAt <= now {
                limiter.take(now: now)
                sent += 1
            }
            return sent
        }
        #expect(sendAll(now: .zero) == 5)
        #expect(sendAll(now: .seconds(5)) == 5, "the burst is full again")
        limiter.settle(unused: 5, of: 5, taken: .zero)
        #expect(sendAll(now: .seconds(5)) == 0)
        limiter.settle(unused: 2, of: 5, taken: .seconds(5))
        #expect(sendAll(now: .seconds(5)) == 2)
    }

    /// Returns how many requests a limiter permits at once.
    private func permitted(_ limiter: RateLimiter, now: Moment = .zero) -> Int {
        var (limiter, count) = (limiter, 0)
        while limiter.opensAt <= now {
            limiter.take(now: now)
            count += 1
        }
        return count
    }

    @Test func `a new rate permits as many requests at once as the old one, up to the new burst`() throws {
        var limiter = RateLimiter(try RateLimit(1, burst: 8))
        for _ in 0..<3 { limiter.take(now: .zero) }
        let larger = limiter.changed(to: try RateLimit(2, burst: 16), now: .zero)
        #expect(permitted(larger) == 5 && permitted(larger, now: .seconds(1)) == 7)
        let smaller = limiter.changed(to: try RateLimit(1, burst: 4), now: .zero)
        #expect(permitted(smaller) == 4 && permitted(smaller, now: .seconds(1)) == 4)
        for _ in 0..<5 { limiter.take(now: .zero) }
        let faster = limiter.changed(to: try RateLimit(2, burst: 8), now: .zero)
        #expect(permitted(faster) == 0 && permitted(faster, now: .seconds(1)) == 2)
    }

    @Test func `turns that were taken before a new rate can be given back`() throws {
        var limiter = RateLimiter(try RateLimit(1, burst: 4))
        for _ in 0..<4 { limiter.take(now: .zero) }
        var slower = limiter.changed(to: try RateLimit(0.5, burst: 4), now: .zero)
        #expect(permitted(slower) == 0)
        slower.settle(unused: 4, of: 4, taken: .zero)
        #expect(permitted(slower) == 4)
    }

    /// Compares the limiter with one that takes only the turns that are used.
    @Test(arguments: 0..<200 as Range<UInt64>)
    func `turns that are given back permit at most what is permitted if they are never taken`(seed: UInt64)
        throws
    {
        let limit = try RateLimit(10, burst: 8)
        var random = SplitMix64(seed: seed)
        var limiter = RateLimiter(limit)
        var open: [(at: Moment, count: Int)] = []
        var (used, now) = ([Moment](), Moment.zero)
        for _ in 0..<200 {
            now = now + .milliseconds(Int.random(in: 0...300, using: &random))
            var count = 0
            while limiter.opensAt <= now, count < 4 {
                limiter.take(now: now)
                count += 1
            }
            if count > 0 { open.append((now, count)) }
            while open.count > Int.random(in: 0...3, using: &random) {
                let claim = open.remove(at: Int.random(in: open.indices, using: &random))
                let unused = Int.random(in: 0...claim.count, using: &random)
                limiter.settle(unused: unused, of: claim.count, taken: claim.at)
                used += [Moment](repeating: claim.at, count: claim.count - unused)
            }
        }
        #expect(keeps(limit, used.sorted()))
    }

    @Test(arguments: [3, 9])
    func `the lanes of an origin share its slots by their weights`(weight: Int) {
        let network = run(
            [(lane(1, "a", "heavy"), 5000), (lane(2, "a", "light"), 5000)],
            until: .seconds(20)
        ) {
            $0.laneWeights = ["heavy": weight]
        }
        let (heavy, light) = (Double(network.byLane[1]!), Double(network.byLane[2]!))
        let share = Double(weight) / Double(weight + 1)
        #expect(abs(heavy / (heavy + light) - share) < 0.05, "\(network.byLane)")
    }

    @Test func `hosts share the slots by their weights, and none starves`() {
        let lanes = (0..<8).map { lane(Int64($0), "h\($0)") }
        let network = run(lanes.map { ($0, 5000) }, until: .seconds(20)) {
            $0.hostWeights = ["h0": 8]
        }
        let others = lanes.dropFirst().map { Double(network.byLane[$0.id]!) }
        let mean = others.reduce(0, +) / 7
        #expect(Double(network.byLane[0]!) > 1.5 * mean, "\(network.byLane)")
        #expect(others.allSatisfy { abs($0 / mean - 1) < 0.15 }, "\(network.byLane)")
    }
}
