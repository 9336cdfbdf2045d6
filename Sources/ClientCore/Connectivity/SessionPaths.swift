internal import Dispatch
internal import NetworkReachability
internal import Synchronization

/// The monitor of a session's paths, which is not there before somebody asks about one: a program whose
/// requests stay on this machine and do not fail has no thread for it.
final class SessionPaths: Sendable {
    private let make: @Sendable () -> PathMonitor
    private let monitor = Mutex<PathMonitor?>(nil)
    /// Where the monitor is made, which takes about a millisecond.
    private let queue = DispatchQueue(label: "netwatch.paths", target: .global(qos: .utility))

    init(_ make: @escaping @Sendable () -> PathMonitor) {
        self.make = make
    }

    /// Calls `body` once with the monitor: at once when there is one, else on a queue of its own.
    func withMonitor(_ body: @escaping @Sendable (PathMonitor) -> Void) {
        if let monitor = monitor.withLock({ $0 }) { return body(monitor) }
        queue.async { body(self.started()) }
    }

    /// The monitor, made where that blocks nobody.
    func monitor() async -> PathMonitor {
        await withCheckedContinuation { continuation in withMonitor { continuation.resume(returning: $0) } }
    }

    /// Whether there is a monitor.
    var isStarted: Bool { monitor.withLock { $0 != nil } }

    /// Judges where a failure came from, as it is now. `answer` is called once, on the monitor's thread, which it
    /// must not block.
    func judge(
        _ suspicion: OfflineSuspicion,
        answer: @escaping @Sendable (PathStatus.Verdict) -> Void
    ) {
        withMonitor { $0.judge(suspicion.addresses, answer: answer) }
    }

    private func started() -> PathMonitor {
        if let monitor = monitor.withLock({ $0 }) { return monitor }
        let made = make()
        monitor.withLock { $0 = made }
        return made
    }
}
