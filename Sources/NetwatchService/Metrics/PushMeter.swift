internal import Foundation
internal import NetwatchEventLoop

/// What the service knows of the pushes of its metrics.
final class PushMeter: Sendable {
    struct Values {
        /// The time between two pushes; `nil` if the service pushes none.
        var interval: Duration?
        /// When the collector accepted a push last; `nil` if it has accepted none.
        var lastSuccess: HostTracker.Start?
        /// When the service began to push to this collector.
        var began: HostTracker.Start?
        /// The number of attempts that failed, and of pushes that the queue refused.
        var failures = 0

        /// The time since the last success, or since the beginning.
        func silence(at now: HostTracker.Moment) -> Duration {
            guard let boot = (lastSuccess ?? began)?.boot else { return .zero }
            return now.boot - boot
        }
    }

    private let state = Lock(Values())

    /// The values since the service started.
    var values: Values { state.withLock { $0 } }

    /// Begins with another collector; with `nil`, ends.
    ///
    /// - Parameter interval: The time between two pushes.
    func begin(every interval: Duration?, at now: HostTracker.Moment) {
        state.withLock { state in
            (state.interval, state.lastSuccess) = (interval, nil)
            state.began = HostTracker.Start(now)
        }
    }

    /// Continues with the same collector, and another interval.
    func change(interval: Duration?) {
        state.withLock { $0.interval = interval }
    }

    func succeeded(at now: HostTracker.Moment) {
        state.withLock { $0.lastSuccess = HostTracker.Start(now) }
    }

    func failed() {
        state.withLock { $0.failures += 1 }
    }
}

extension ControlMessage.Push {
    /// Returns `nil` if the service pushes no metrics.
    init?(_ values: PushMeter.Values, at now: HostTracker.Moment) {
        guard let interval = values.interval else { return nil }
        self.init(
            intervalSeconds: interval / .seconds(1),
            silentSeconds: values.silence(at: now) / .seconds(1),
            lastSuccess: values.lastSuccess.map { Date(milliseconds: $0.wall(at: now)) },
            failures: values.failures
        )
    }
}
