internal import NetwatchEventLoop

@testable internal import NetworkReachability

/// An hour or so of a schedule's life: statuses, checks and ends of probes in random order, with the promises
/// held against what it does.
struct ValidationSimulation {
    /// Ways to break what lies between the schedule and the world.
    enum Sabotage: CaseIterable {
        /// A cancelled probe counts as ended while it still runs.
        case endsTooEarly
        /// A status is not told.
        case losesStatus
        /// Something is published that is not the kernel's word.
        case altersStatus
        /// Nobody looks at the clock.
        case losesTime
    }

    private typealias Schedule = ValidationSchedule<ContinuousClock.Instant>

    private struct Flight {
        let generation: UInt64
        let latency: Duration
    }

    private let sabotage: Sabotage?
    private let interval: Duration?
    private var random: SplitMix
    private var schedule: Schedule
    private var now = ContinuousClock.now
    private var generation: UInt64 = 0
    private var status: PathStatus?
    private var flights: [Flight] = []
    private var lastStart: ContinuousClock.Instant?
    private var generationOfResult: [Duration: UInt64] = [:]
    private var violations: [String] = []

    init(seed: UInt64, sabotage: Sabotage?) {
        self.sabotage = sabotage
        random = SplitMix(state: seed)
        interval = Bool.random(using: &random) ? .seconds(Int.random(in: 1...60, using: &random)) : nil
        schedule = Schedule(interval: interval)
    }

    /// Returns the promises that were broken.
    mutating func run(steps: Int = 400) -> [String] {
        for _ in 0..<steps where violations.isEmpty {
            now += .milliseconds(Int.random(in: 0...2000, using: &random))
            step()
            if sabotage != .losesTime { act(schedule.timeHasPassed(now: now)) }
            checkLiveness()
        }
        return violations
    }

    // MARK: The world

    private mutating func step() {
        switch Int.random(in: 0..<8, using: &random) {
        case 0...2: changeStatus()
        case 3: act(schedule.check(now: now))
        case 4...6: endProbe()
        default: break
        }
    }

    private mutating func changeStatus() {
        let isReachable = Bool.random(using: &random)
        if isReachable, Bool.random(using: &random) || status?.path == nil { generation += 1 }
        let new = PathStatus(
            target: .general,
            finding: Finding(isReachable ? .reachable(.to("198.51.100.7")) : .notReachable(.noRoute)),
            pathGeneration: generation
        )
        status = new
        if sabotage == .losesStatus, Int.random(in: 0..<8, using: &random) == 0 { return }
        act(schedule.take(new, now: now))
    }

    private mutating func endProbe() {
        guard let flight = flights.popLast() else { return }
        generationOfResult[flight.latency] = flight.generation
        let validation = Bool.random(using: &random) ? PathValidation.valid : .failed("no answer")
        let result = ProbeResult(validation, latency: flight.latency)
        act(schedule.ended(result, now: now, random: .random(in: 0...1, using: &random)))
    }

    // MARK: The promises

    private mutating func act(_ actions: [Schedule.Action]) {
        for action in actions {
            switch action {
            case .publish(let status): check(status)
            case .start(let path): start(path)
            case .cancel:
                require(!flights.isEmpty, "cancelled nothing")
                guard sabotage == .endsTooEarly else { continue }
                act(schedule.ended(ProbeResult(.failed("cancelled")), now: now, random: 0))
            }
        }
    }

    private mutating func start(_ path: NetworkPath) {
        require(flights.isEmpty, "two probes at once")
        require(path == status?.path, "a probe over a path that is not the present one")
        if let lastStart {
            require(lastStart.duration(to: now) >= .milliseconds(250), "probes too close together")
        }
        lastStart = now
        flights.append(Flight(generation: generation, latency: .nanoseconds(generationOfResult.count + 1)))
    }

    private mutating func check(_ published: ValidatedStatus) {
        var seen = published.status
        if sabotage == .altersStatus, case .failed? = published.probe?.validation {
            seen = PathStatus(
                target: .general,
                finding: Finding(.notReachable(.noRoute)),
                pathGeneration: seen.pathGeneration
            )
        }
        require(seen == status, "a status that is not the kernel's")
        guard let latency = published.probe?.latency else { return }
        require(published.status.isReachable, "a result without a path")
        require(generationOfResult[latency] == generation, "a result of another path")
    }

    /// While there is a path to be probed again, a probe runs or is to come: not too late, and not overdue.
    private mutating func checkLiveness() {
        if let due = schedule.nextDue { require(due > now, "an overdue probe") }
        guard let interval, status?.path != nil, flights.isEmpty else { return }
        let latest = now + interval * 1.25 + .seconds(1)
        require(schedule.nextDue.map { $0 <= latest } ?? false, "no probe to come")
    }

    private mutating func require(_ condition: Bool, _ promise: String) {
        if !condition { violations.append(promise) }
    }
}

/// SplitMix64, whose whole state is the seed.
private struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
        return value ^ (value >> 31)
    }
}
