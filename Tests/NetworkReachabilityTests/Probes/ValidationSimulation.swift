internal import NetwatchEventLoop

@testable internal import NetworkReachability

/// Simulates a ``ValidationSchedule`` with statuses, checks and ends of probes in random order, and checks its
/// invariants. One run simulates about seven minutes.
struct ValidationSimulation {
    /// The faults that the simulation injects between the schedule and its environment.
    enum Fault: CaseIterable {
        /// Reports a cancelled probe as ended while it still runs.
        case endsTooEarly
        /// Drops some statuses.
        case losesStatus
        /// Publishes a status other than the kernel's.
        case altersStatus
        /// Never tells the schedule that time has passed.
        case losesTime
    }

    private typealias Schedule = ValidationSchedule<BootInstant>

    private struct Flight {
        let generation: UInt64
        let latency: Duration
    }

    private let fault: Fault?
    private let interval: Duration?
    private var random: SplitMix
    private var schedule: Schedule
    private var now = BootInstant.now
    private var generation: UInt64 = 0
    private var status: PathStatus?
    private var flights: [Flight] = []
    private var lastStart: BootInstant?
    private var generationOfResult: [Duration: UInt64] = [:]
    private var violations: [String] = []

    init(seed: UInt64, fault: Fault?) {
        self.fault = fault
        random = SplitMix(state: seed)
        interval = Bool.random(using: &random) ? .seconds(Int.random(in: 1...60, using: &random)) : nil
        schedule = Schedule(interval: interval)
    }

    /// Runs the simulation until the first violation, and returns the violated invariants.
    mutating func run(steps: Int = 400) -> [String] {
        for _ in 0..<steps where violations.isEmpty {
            now = now + .milliseconds(Int.random(in: 0...2000, using: &random))
            step()
            if fault != .losesTime { act(schedule.timeHasPassed(now: now)) }
            checkLiveness()
        }
        return violations
    }

    // MARK: Environment

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
            verdict: TargetVerdict(isReachable ? .reachable(.to("198.51.100.7")) : .notReachable(.noRoute)),
            pathGeneration: generation
        )
        status = new
        if fault == .losesStatus, Int.random(in: 0..<8, using: &random) == 0 { return }
        act(schedule.take(new, now: now))
    }

    private mutating func endProbe() {
        guard let flight = flights.popLast() else { return }
        generationOfResult[flight.latency] = flight.generation
        let validation = Bool.random(using: &random) ? PathValidation.valid : .failed("no answer")
        let result = ProbeResult(validation, latency: flight.latency)
        act(schedule.ended(result, now: now, random: .random(in: 0...1, using: &random)))
    }

    // MARK: Invariants

    private mutating func act(_ actions: [Schedule.Action]) {
        for action in actions {
            switch action {
            case .publish(let status): check(status)
            case .start(let path): start(path)
            case .cancel:
                require(!flights.isEmpty, "a probe is cancelled although none is running")
                guard fault == .endsTooEarly else { continue }
                act(schedule.ended(ProbeResult(.failed("cancelled")), now: now, random: 0))
            }
        }
    }

    private mutating func start(_ path: NetworkPath) {
        require(flights.isEmpty, "two probes run at once")
        require(path == status?.path, "a probe uses a path other than the current one")
        if let lastStart {
            require(lastStart.duration(to: now) >= .milliseconds(250), "two probes start within 250 ms")
        }
        lastStart = now
        flights.append(Flight(generation: generation, latency: .nanoseconds(generationOfResult.count + 1)))
    }

    private mutating func check(_ published: ValidatedStatus) {
        var seen = published.status
        if fault == .altersStatus, case .failed? = published.probe?.validation {
            seen = PathStatus(
                target: .general,
                verdict: TargetVerdict(.notReachable(.noRoute)),
                pathGeneration: seen.pathGeneration
            )
        }
        require(seen == status, "a published status differs from the kernel's")
        guard let latency = published.probe?.latency else { return }
        require(published.status.isReachable, "a result is published without a path")
        require(generationOfResult[latency] == generation, "a result of another path is published")
    }

    /// Checks that no scheduled probe is overdue. With an interval and a path, also checks that a probe runs or is
    /// scheduled in time.
    private mutating func checkLiveness() {
        if let due = schedule.nextDue { require(due > now, "a scheduled probe is overdue") }
        guard let interval, status?.path != nil, flights.isEmpty else { return }
        let latest = now + interval * 1.25 + .seconds(1)
        require(schedule.nextDue.map { $0 <= latest } ?? false, "no probe is scheduled in time")
    }

    private mutating func require(_ condition: Bool, _ promise: String) {
        if !condition { violations.append(promise) }
    }
}

/// A random number generator (SplitMix64) whose only state is its seed.
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
