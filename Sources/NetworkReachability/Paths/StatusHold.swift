/// Turns verdicts about one target into the statuses that are published. A pure value.
///
/// The first status and the edge to reachable are published at once. Every other change waits, because
/// links blink and pass through states on their way: what is back within the settle time is not reported
/// as lost, and a reason that lasts shorter is not reported at all. Only the generation of a path that was
/// lost and found rises.
struct StatusHold: Sendable {
    private let target: PathTarget
    private let settle: Duration

    /// The status last published.
    private(set) var published: PathStatus?
    /// Until when a change is held back; `nil` when nothing is.
    private(set) var heldUntil: ContinuousClock.Instant?
    private var isSuspect = false
    /// The last reachable verdict. It shares its path with the published status.
    private var lastWay: PathStatus.Verdict?
    private var wayGeneration: UInt64 = 0
    private var isWaySuspect = false

    init(target: PathTarget, settle: Duration) {
        self.target = target
        self.settle = settle
    }

    /// Takes a fresh finding. Returns the new status when it differs from the one before.
    mutating func update(_ finding: Finding, now: ContinuousClock.Instant) -> PathStatus? {
        if case .reachable(let path) = finding.verdict {
            noteWay(path, finding.verdict)
            return publish(finding, generation: generation(of: path))
        }
        if finding.verdict == published?.verdict {
            heldUntil = nil
            return nil
        }
        if mustHold(now: now) { return nil }
        return publish(finding, generation: published?.pathGeneration ?? 0)
    }

    /// Has the generation rise with the next path that is found, even if it is the one before: time passed
    /// that nobody saw, and connections may have died in it.
    mutating func suspectPath() {
        isSuspect = true
        isWaySuspect = true
    }

    /// The generation of a path that the kernel has at this moment, whatever is published.
    var currentGeneration: UInt64 {
        guard let published else { return 0 }
        let isSettled = published.isReachable && heldUntil == nil && !isSuspect
        return isSettled ? published.pathGeneration : published.pathGeneration + 1
    }

    private mutating func mustHold(now: ContinuousClock.Instant) -> Bool {
        guard published != nil, settle > .zero else { return false }
        let until = heldUntil ?? now + settle
        heldUntil = until
        return now < until
    }

    private mutating func noteWay(_ path: NetworkPath, _ verdict: PathStatus.Verdict) {
        let isSame = lastWay?.path?.isSameWay(as: path) == true && !isWaySuspect
        isWaySuspect = false
        if isSame { return }
        lastWay = verdict
        wayGeneration += 1
    }

    /// The generation rises when the way changed, and when it had been lost since it was last seen.
    private func generation(of path: NetworkPath) -> UInt64 {
        guard let published else { return 1 }
        let isSameWay = published.path?.isSameWay(as: path) == true
        let isUnchanged = heldUntil == nil && !isSuspect && isSameWay
        return isUnchanged ? published.pathGeneration : published.pathGeneration + 1
    }

    private mutating func publish(_ finding: Finding, generation: UInt64) -> PathStatus? {
        heldUntil = nil
        isSuspect = false
        let status = PathStatus(
            target: target,
            finding: finding,
            pathGeneration: generation,
            wayGeneration: wayGeneration
        )
        guard status != published else { return nil }
        published = status
        return status
    }
}
