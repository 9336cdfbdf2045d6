/// Says when the path of one target is probed, and what is then known. A pure value.
///
/// At most one probe runs at a time. One whose path is gone is cancelled, and its result is dropped; the next
/// one starts when it has ended. Statuses pass through unaltered.
struct ValidationSchedule<Instant: InstantProtocol>: Sendable where Instant.Duration == Duration {
    /// What is to be done, in this order.
    enum Action: Hashable, Sendable {
        case publish(ValidatedStatus)
        /// Start a probe over this path. Its end comes back, also after ``cancel``.
        case start(NetworkPath)
        /// Cancel the probe that runs.
        case cancel
    }

    private enum Flight: Sendable {
        case none
        case running
        /// It was cancelled and has not ended yet.
        case ending
    }

    /// How long after the first failure the path is tried again; each further one doubles it.
    static var firstRetry: Duration { .seconds(1) }
    /// The shortest time between two starts: a link that blinks is not answered with a storm.
    static var spacing: Duration { .milliseconds(250) }
    /// The shortest time between two starts when nothing but ``check(now:)`` calls for the second. Whoever
    /// sends a thousand requests in vain asks a thousand times.
    static var checkSpacing: Duration { .seconds(1) }
    /// By how much the interval is varied, up and down, so that many machines do not probe in step.
    static var intervalJitter: Double { 0.1 }
    /// The same of the time after a failure, when machines of one network fail together.
    static var retryJitter: Double { 0.25 }

    private let interval: Duration?
    private var status: PathStatus?
    private var result: ProbeResult?
    private var flight = Flight.none
    private var due: Instant?
    private var lastStart: Instant?
    private var failures = 0

    /// - Parameter interval: The time from the end of a probe to the start of the next one over the same
    ///   path, at least 1 s. `nil` probes each path once.
    init(interval: Duration?) {
        self.interval = interval.map { max($0, Self.firstRetry) }
    }

    /// When ``timeHasPassed(now:)`` is wanted; `nil` while there is nothing to wait for.
    var nextDue: Instant? {
        if case .none = flight { due } else { nil }
    }

    // MARK: What happened

    /// The target has a new status.
    mutating func take(_ new: PathStatus, now: Instant) -> [Action] {
        let isSamePath = Self.isSamePath(status, new)
        status = new
        guard !isSamePath else { return publish() }
        result = nil
        failures = 0
        due = new.path.map { _ in earliestStart(after: Self.spacing, now: now) }
        return cancelFlight() + publish() + startIfDue(now: now)
    }

    /// Somebody doubts the path. A probe that runs already will answer that too.
    mutating func check(now: Instant) -> [Action] {
        guard status?.path != nil, case .none = flight else { return [] }
        let start = earliestStart(after: Self.checkSpacing, now: now)
        due = due.map { min($0, start) } ?? start
        return startIfDue(now: now)
    }

    /// The probe that was started has ended.
    ///
    /// - Parameter random: A number from 0 to 1, which decides about the jitter.
    mutating func ended(_ new: ProbeResult, now: Instant, random: Double) -> [Action] {
        let isWanted = if case .running = flight { true } else { false }
        flight = .none
        guard isWanted else { return startIfDue(now: now) }
        result = new
        failures = new.validation.isGood ? 0 : failures + 1
        due = waitingTime(random: random).map { now.advanced(by: $0) }
        return publish()
    }

    /// The moment of ``nextDue`` may have come.
    mutating func timeHasPassed(now: Instant) -> [Action] {
        startIfDue(now: now)
    }

    // MARK: What to do

    /// Whether a result over one path holds for the other.
    private static func isSamePath(_ old: PathStatus?, _ new: PathStatus) -> Bool {
        old?.pathGeneration == new.pathGeneration && old?.path?.destination == new.path?.destination
    }

    private func earliestStart(after spacing: Duration, now: Instant) -> Instant {
        lastStart.map { max(now, $0.advanced(by: spacing)) } ?? now
    }

    private func publish() -> [Action] {
        status.map { [.publish(ValidatedStatus(status: $0, probe: result))] } ?? []
    }

    private mutating func cancelFlight() -> [Action] {
        guard case .running = flight else { return [] }
        flight = .ending
        return [.cancel]
    }

    private mutating func startIfDue(now: Instant) -> [Action] {
        guard case .none = flight, let due, due <= now, let path = status?.path else { return [] }
        flight = .running
        lastStart = now
        self.due = nil
        return [.start(path)]
    }

    private func waitingTime(random: Double) -> Duration? {
        guard let interval else { return nil }
        guard failures > 0 else { return interval.jittered(by: Self.intervalJitter, random) }
        let doublings = min(failures - 1, 20)
        return min(interval, Self.firstRetry * (1 << doublings)).jittered(by: Self.retryJitter, random)
    }
}

extension PathValidation {
    /// Whether there is no hurry to ask again.
    fileprivate var isGood: Bool {
        switch self {
        case .none, .valid: true
        case .captive, .failed: false
        }
    }
}
