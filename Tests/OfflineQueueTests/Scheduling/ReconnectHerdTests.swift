internal import Testing

@testable internal import OfflineQueue

/// A server that serves a limited number of requests at a time, and rejects others with a 503.
struct LimitedServer: SimulatedNetwork {
    let capacity: Int
    /// The mean time that a request takes. The actual times are 0.5 to 1.5 times as long.
    let serviceTime: Duration
    private var random = SplitMix64(seed: 1)
    private(set) var arrivals: [Moment] = []
    private(set) var rejected = 0
    private var served: [Moment] = []
    private var inService = 0

    init(capacity: Int, serviceTime: Duration) {
        (self.capacity, self.serviceTime) = (capacity, serviceTime)
    }

    mutating func reply(to arrival: FleetArrival) -> (effect: LaneEffect, after: Duration) {
        arrivals.append(arrival.at)
        guard inService < capacity else {
            rejected += 1
            return (.close, .milliseconds(20))
        }
        inService += 1
        return (.healthy, random.uniform(serviceTime / 2...serviceTime * 3 / 2))
    }

    mutating func ended(_ arrival: FleetArrival, _ effect: LaneEffect, now: Moment) {
        guard effect == .healthy else { return }
        inService -= 1
        served.append(now)
    }

    /// Returns when this share of all requests was served.
    func end(ofShare share: Double) -> Moment {
        served[Int(share * Double(served.count - 1))]
    }

    /// Returns the number of requests that arrived before this time.
    func arrivals(before end: Moment) -> Int { arrivals.count { $0 < end } }

    /// Returns the largest number of requests that arrived within any interval of this length.
    func peak(within interval: Duration) -> Int {
        var (first, peak) = (0, 0)
        for index in arrivals.indices {
            while arrivals[first] <= arrivals[index] - interval { first += 1 }
            peak = max(peak, index - first + 1)
        }
        return peak
    }
}

/// 200 queues behind one link, and the load of a server with limited capacity when the link returns. The server could
/// serve 2,000 requests per second.
@Suite struct ReconnectHerdTests {
    private static let linkUp = Moment.seconds(60)
    private static let queues = 200
    private static let capacity = 400
    private static let serviceTime = Duration.milliseconds(200)

    /// The time that the server would take for this number of requests of each queue, if it was always busy.
    private static func ideal(rows: Int) -> Duration {
        serviceTime * Double(queues * rows) / Double(capacity)
    }

    /// Returns the server after all requests were delivered.
    private func reconnect(
        rows: Int = 100,
        _ adjust: (inout Scheduler.Settings) -> Void = { _ in }
    ) -> LimitedServer {
        var settings = Scheduler.Settings()
        adjust(&settings)
        var fleet = FleetSimulation(LimitedServer(capacity: Self.capacity, serviceTime: Self.serviceTime))
        for queue in 0..<Self.queues {
            let lane = Scheduler.LaneInfo(id: 1, host: "server", mode: .parallel)
            fleet.addQueue(settings, seed: UInt64(queue), lanes: [lane], gate: .notReachable)
            fleet.enqueue(rows, queue: queue, at: .zero)
            fleet.turn(.reachable(generation: 1, route: 1), queue: queue, at: Self.linkUp)
        }
        fleet.run(until: .seconds(7200))
        #expect(fleet.unfinished == 0 && fleet.delivered == Self.queues * rows)
        return fleet.network
    }

    /// The time by which every request is served. A lane whose canaries were all rejected may still wait when the
    /// server is idle again, but not longer than the maximum of its backoff. It then sends all of its requests.
    private static func latestEnd(rows: Int) -> Duration {
        ideal(rows: rows) * 1.3 + Backoff().cap + serviceTime * rows
    }

    /// Returns how many requests arrive within this time after the link returned.
    private func arrivals(within time: Duration, _ server: LimitedServer) -> Int {
        server.arrivals(before: Self.linkUp + time)
    }

    @Test func `with a spread of 10 s, 200 queues with 500 requests each do not arrive as a herd`() {
        let server = reconnect(rows: 500) { $0.reconnectSpread = .seconds(10) }
        #expect(arrivals(within: .milliseconds(250), server) <= 2 * Self.queues / 10)
        #expect(server.peak(within: .milliseconds(20)) <= Self.queues, "no second peak")
        #expect(server.rejected <= Self.queues * 500 / 20)
        let duration = server.end(ofShare: 0.95) - Self.linkUp
        #expect(duration <= Self.ideal(rows: 500) * 1.3 + .seconds(10))
        #expect(server.end(ofShare: 1) - Self.linkUp <= Self.latestEnd(rows: 500) + .seconds(10))
    }

    @Test func `without a spread, each queue sends one request before the server responds`() {
        let server = reconnect()
        #expect(arrivals(within: .milliseconds(20), server) == Self.queues)
        #expect(arrivals(within: .milliseconds(250), server) <= 5 * Self.queues)
        #expect(server.peak(within: .milliseconds(20)) <= 3 * Self.queues, "no second peak")
    }

    @Test func `the server is busy until 99 % of the requests are served, although it rejected many of them`()
    {
        let server = reconnect(rows: 500)
        #expect(server.rejected > Self.queues * 500 / 10)
        #expect(server.end(ofShare: 0.99) - Self.linkUp <= Self.ideal(rows: 500) * 1.3)
        #expect(server.end(ofShare: 1) - Self.linkUp <= Self.latestEnd(rows: 500))
    }

    @Test func `without canaries and the ramp, the same requests would arrive as a herd`() {
        let noCanary = reconnect { $0.canaryTime = .zero }
        #expect(arrivals(within: .milliseconds(20), noCanary) == 4 * Self.queues, "the start of the ramp")
        let noRamp = reconnect { $0.rampStart = .max }
        #expect(arrivals(within: .milliseconds(250), noRamp) > 6 * Self.queues)
        let neither = reconnect { ($0.canaryTime, $0.rampStart) = (.zero, .max) }
        #expect(arrivals(within: .milliseconds(20), neither) == 8 * Self.queues)
    }

    @Test func `adaptive windows reduce the requests that an overloaded server rejects`() {
        let adaptive = reconnect { $0.retryRate = 1e6 }
        let fixed = reconnect {
            $0.retryRate = 1e6
            $0.windowDecrease = 1
        }
        #expect(2 * adaptive.rejected < fixed.rejected)
    }
}
