internal import NetwatchEventLoop

/// Converts the verdicts on one target into the statuses to publish. A pure value.
///
/// The first status and every change to reachable are published immediately. Every other change is held back for the
/// settle time (``PathMonitor/Configuration/settle``), because links flap and pass through intermediate states. For
/// example, a link that comes up has a route before it has a carrier.
/// - A path that returns within the settle time is not reported as lost. Only ``PathStatus/pathGeneration`` increases.
/// - A reason that does not last for the settle time is not reported.
struct StatusHold: Sendable {
    private let target: PathTarget
    private let settle: Duration

    /// The last published status; `nil` before the first one.
    private(set) var published: PathStatus?
    /// The time until which a change is held back; `nil` if no change is held back.
    private(set) var heldUntil: BootInstant?
    private var isPathSuspect = false
    /// The last reachable verdict. Its path and the path of the published status share their storage.
    private var lastRoute: PathStatus.Verdict?
    private var routeGeneration: UInt64 = 0
    private var isRouteSuspect = false

    init(target: PathTarget, settle: Duration) {
        self.target = target
        self.settle = settle
    }

    /// Processes a new verdict. Returns the status to publish now; `nil` if nothing changes or the change is held back.
    mutating func update(_ targetVerdict: TargetVerdict, now: BootInstant) -> PathStatus? {
        if case .reachable(let path) = targetVerdict.verdict {
            noteRoute(path, targetVerdict.verdict)
            return publish(targetVerdict, generation: generation(of: path))
        }
        if targetVerdict.verdict == published?.verdict {
            heldUntil = nil
            return nil
        }
        if mustHold(now: now) { return nil }
        return publish(targetVerdict, generation: published?.pathGeneration ?? 0)
    }

    /// Makes both generations increase with the next reachable verdict, even if its path is the same as before.
    ///
    /// Called after a suspension, because connections may have died in the meantime.
    mutating func suspectPath() {
        isPathSuspect = true
        isRouteSuspect = true
    }

    /// The ``PathStatus/pathGeneration`` that a status would have if it were published now with the same path.
    var currentGeneration: UInt64 {
        guard let published else { return 0 }
        let isSettled = published.isReachable && heldUntil == nil && !isPathSuspect
        return isSettled ? published.pathGeneration : published.pathGeneration + 1
    }

    private mutating func mustHold(now: BootInstant) -> Bool {
        guard published != nil, settle > .zero else { return false }
        let until = heldUntil ?? now + settle
        heldUntil = until
        return now < until
    }

    private mutating func noteRoute(_ path: NetworkPath, _ verdict: PathStatus.Verdict) {
        let isSame = lastRoute?.path?.usesSameRoute(as: path) == true && !isRouteSuspect
        isRouteSuspect = false
        if isSame { return }
        lastRoute = verdict
        routeGeneration += 1
    }

    /// Returns the generation of a path. It increases if the path has changed, was lost in the meantime, or is suspect.
    private func generation(of path: NetworkPath) -> UInt64 {
        guard let published else { return 1 }
        let usesSameRoute = published.path?.usesSameRoute(as: path) == true
        let isUnchanged = heldUntil == nil && !isPathSuspect && usesSameRoute
        return isUnchanged ? published.pathGeneration : published.pathGeneration + 1
    }

    private mutating func publish(_ targetVerdict: TargetVerdict, generation: UInt64) -> PathStatus? {
        heldUntil = nil
        isPathSuspect = false
        let status = PathStatus(
            target: target,
            verdict: targetVerdict,
            pathGeneration: generation,
            routeGeneration: routeGeneration
        )
        guard status != published else { return nil }
        published = status
        return status
    }
}
