/// What the monitor keeps about one watched target.
struct TargetRecord {
    var hold: StatusHold
    /// `nil` for everything that is not a name.
    var resolution: NameResolution?
    var subscribers: [UInt64: @Sendable (PathStatus) -> Void] = [:]

    init(target: PathTarget, settle: Duration, now: ContinuousClock.Instant) {
        hold = StatusHold(target: target, settle: settle)
        if case .host(let host) = target, case .name(let name) = host.kind {
            resolution = NameResolution(name: name, now: now)
        }
    }

    /// When a route that the last verdict rests on expires.
    private var expiryDue: ContinuousClock.Instant?

    /// The next moment at which this target needs attention without any event.
    var nextDue: ContinuousClock.Instant? {
        [hold.heldUntil, expiryDue, resolution?.firstStatusDue, resolution?.retryDue].compactMap(\.self).min()
    }

    func isDue(at now: ContinuousClock.Instant) -> Bool {
        nextDue.map { $0 <= now } ?? false
    }

    /// Takes a fresh judgement. Returns the new status when it differs from the one before.
    mutating func update(_ judgement: PathReader.Judgement, now: ContinuousClock.Instant) -> PathStatus? {
        // A little later than the kernel says, which rounds down to 10 ms.
        expiryDue = judgement.lifetime.map { now + $0 + .milliseconds(20) }
        if resolution?.mayHaveStatus(now: now) == false { return nil }
        return hold.update(judgement.verdict, now: now)
    }
}
