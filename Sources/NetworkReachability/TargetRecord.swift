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

    /// The next moment at which this target needs attention without any event.
    var nextDue: ContinuousClock.Instant? {
        [hold.heldUntil, resolution?.firstStatusDue, resolution?.retryDue].compactMap(\.self).min()
    }

    /// Takes a fresh verdict and tells every subscriber if it changed the status.
    mutating func update(_ verdict: PathStatus.Verdict, now: ContinuousClock.Instant) {
        if resolution?.mayHaveStatus(now: now) == false { return }
        guard let status = hold.update(verdict, now: now) else { return }
        for deliver in subscribers.values { deliver(status) }
    }
}
