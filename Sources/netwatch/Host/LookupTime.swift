internal import NetwatchEventLoop
internal import NetworkReachability

/// The duration of the lookup of a watched name. The monitor looks the name up before it reports the first status.
final class LookupTime: Sendable {
    private let started = ContinuousClock.now
    private let duration = Lock<Duration?>(nil)

    /// Records the time of the first status, and returns the status with the duration in the phases of its probe.
    func adding(to status: ValidatedStatus) -> ValidatedStatus {
        let lookup = duration.withLock { duration in
            if duration == nil { duration = started.duration(to: .now) }
            return duration
        }
        guard var result = status.probe, result.phases != nil else { return status }
        result.phases?.lookup = lookup
        return ValidatedStatus(status: status.status, probe: result)
    }
}
