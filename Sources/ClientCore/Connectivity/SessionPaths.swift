internal import Dispatch
internal import NetwatchEventLoop
internal import NetworkReachability

/// The path monitor of a session, created on first use. So a program has no monitor thread as long as its requests stay
/// on this machine and do not fail.
final class SessionPaths: Sendable {
    private let make: @Sendable () -> PathMonitor
    private let monitor = Lock<PathMonitor?>(nil)
    /// The queue on which the monitor is created. Creating a monitor takes about a millisecond.
    private let queue = DispatchQueue(label: "netwatch.paths", target: .global(qos: .utility))

    init(_ make: @escaping @Sendable () -> PathMonitor) {
        self.make = make
    }

    /// Calls `body` once with the monitor: immediately if the monitor exists, otherwise on a separate queue after
    /// creating it.
    func withMonitor(_ body: @escaping @Sendable (PathMonitor) -> Void) {
        if let monitor = monitor.withLock({ $0 }) { return body(monitor) }
        queue.async { body(self.started()) }
    }

    /// Returns the monitor. If it does not exist yet, it is created without blocking the caller's thread.
    func monitor() async -> PathMonitor {
        await withCheckedContinuation { continuation in withMonitor { continuation.resume(returning: $0) } }
    }

    /// Whether the monitor has been created.
    var isStarted: Bool { monitor.withLock { $0 != nil } }

    /// Looks up whether the addresses of a check are reachable now.
    ///
    /// - Parameters:
    ///   - check: The addresses to look up after a failed transfer.
    ///   - answer: Receives the verdict. Called once, on the monitor's thread, which it must not block.
    func evaluate(
        _ check: OfflineCheck,
        answer: @escaping @Sendable (PathStatus.Verdict) -> Void
    ) {
        withMonitor { monitor in
            switch check {
            case .host(let addresses, let port): monitor.lookUp(addresses, port: port, answer: answer)
            case .general: monitor.lookUp(nil, answer: answer)
            }
        }
    }

    private func started() -> PathMonitor {
        if let monitor = monitor.withLock({ $0 }) { return monitor }
        let made = make()
        monitor.withLock { $0 = made }
        return made
    }
}
