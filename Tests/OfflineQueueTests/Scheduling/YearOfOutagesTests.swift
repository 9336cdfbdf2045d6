internal import Testing

@testable internal import OfflineQueue

/// A year of a queue with eight lanes to as many servers, in virtual time.
@Suite struct YearOfOutagesTests {
    private static let seed: UInt64 = 17

    /// The faults that a test injects into the scheduler, and the violation that each of them must cause.
    enum Fault: String, CaseIterable {
        case noCanary = "a lane sends more than its canary"
        case noRamp = "the ramp starts with more than 4"
        case noBudget = "there are too many retries"
        case tooManySlots = "a lane has too many in flight"
        case impatient = "an unreachable host is tried too often"

        func inject(into settings: inout Scheduler.Settings) {
            switch self {
            case .noCanary: settings.canaryTime = .zero
            case .noRamp: settings.rampStart = .max
            case .noBudget: settings.retryShare = 1000
            case .tooManySlots: (settings.inflightPerLane, settings.inflightPerOrigin) = (9, 9)
            case .impatient: settings.backoff = Backoff(cap: .seconds(60))
            }
        }
    }

    private struct Result {
        let network: YearOfOutages
        let unfinished: Int
        let outages: [Moment]
        let probes: [Moment]
    }

    private func simulate(days: Int64, _ fault: Fault? = nil) -> Result {
        let end = Moment.seconds(days * 86_400)
        var random = SplitMix64(seed: Self.seed)
        let outages = self.outages(until: end, &random)
        let troubles = Dictionary(
            uniqueKeysWithValues: (1...6 as ClosedRange<Int64>).map {
                ($0, self.troubles(until: end, &random))
            }
        )
        let network = YearOfOutages(seed: Self.seed, outages: outages, troubles: troubles)
        var settings = Scheduler.Settings()
        fault?.inject(into: &settings)
        var fleet = FleetSimulation(network)
        let lanes = (1...8 as ClosedRange<Int64>).map { id in
            Scheduler.LaneInfo(id: id, host: "host\(id)", mode: id == 6 || id == 8 ? .fifo : .parallel)
        }
        fleet.addQueue(settings, seed: Self.seed, lanes: lanes, gate: .reachable(generation: 0, route: 1))
        var probes: [Moment] = []
        for (index, outage) in outages.enumerated() {
            fleet.turn(.notReachable, at: outage.start)
            fleet.turn(.reachable(generation: UInt64(index + 1), route: 1), at: outage.end)
            // Each lane has requests when the link returns.
            for lane in lanes { fleet.enqueue(3, lane: lane.id, at: outage.end - .seconds(1)) }
            probes.append(outage.end + .seconds(300))
            fleet.enqueue(lane: 7, at: probes[index])
        }
        for _ in 0..<(30 + days / 3) {
            let lane = Int64.random(in: 1...6, using: &random)
            let count = Int.random(in: 1...(lane == 6 ? 20 : 200), using: &random)
            fleet.enqueue(count, lane: lane, at: random.uniform(.zero...end))
        }
        fleet.run(until: end + .seconds(30 * 86_400))
        return Result(
            network: fleet.network,
            unfinished: fleet.unfinished,
            outages: outages.map(\.end),
            probes: probes
        )
    }

    /// Returns outages of 10 s to ten days. After each of them, the link works for at least ten minutes.
    private func outages(until last: Moment, _ random: inout SplitMix64) -> [YearOfOutages.Period<Void>] {
        var (periods, now) = ([YearOfOutages.Period<Void>](), Moment.zero)
        while now < last {
            let start = now + random.uniform(.seconds(600) ... .seconds(4 * 86_400))
            let longest: Int64 = [60, 3600, 86_400, 10 * 86_400][Int.random(in: 0..<4, using: &random)]
            let end = start + random.uniform(.seconds(10) ... .seconds(longest))
            periods.append(.init(start: start, end: end, value: ()))
            now = end
        }
        return periods
    }

    private func troubles(until last: Moment, _ random: inout SplitMix64) -> [YearOfOutages.Period<
        YearOfOutages.Trouble
    >] {
        var (periods, now) = ([YearOfOutages.Period<YearOfOutages.Trouble>](), Moment.zero)
        while now < last {
            let start = now + random.uniform(.seconds(60) ... .seconds(10 * 86_400))
            let end = start + random.uniform(.seconds(60) ... .seconds(10 * 86_400))
            let kind = YearOfOutages.Trouble.allCases.randomElement(using: &random)!
            periods.append(.init(start: start, end: end, value: kind))
            now = end
        }
        return periods
    }

    @Test func `in a year of outages no limit is exceeded, and servers with trouble delay no other server`() {
        let result = simulate(days: 365)
        let arrivals = result.network.calmArrivals
        #expect(result.network.violations.isEmpty && result.unfinished == 0)
        #expect(result.network.attempts > 10_000)
        #expect(
            result.outages.allSatisfy(arrivals.contains),
            "the first request starts when the link returns"
        )
        #expect(result.probes.allSatisfy(arrivals.contains), "a request starts when it is enqueued")
    }

    @Test(arguments: Fault.allCases)
    func `the checks detect a scheduler without one of the mechanisms`(fault: Fault) {
        let violations = simulate(days: 45, fault).network.violations
        #expect(violations.contains(fault.rawValue), "\(violations)")
    }
}
