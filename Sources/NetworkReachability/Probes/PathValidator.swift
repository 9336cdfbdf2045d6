internal import NetwatchEventLoop

/// Watches a target and probes the paths to it, as long as it is retained and not cancelled.
///
/// A probe runs when the target becomes reachable and when the path changes (``PathStatus/pathGeneration``), and then
/// after each interval, ±10 %. A captive or failed path is probed again after 1 s, 2 s, 4 s, … up to the interval,
/// ±25 %. Probes of one validator never overlap and start at least 250 ms apart. A probe is cancelled, and its result
/// dropped, when its path is lost. At most 128 probes run at once in the process; the others wait.
///
/// A probe never changes what the kernel reports: ``ValidatedStatus/status`` is the status that a watch would
/// deliver.
public final class PathValidator: Sendable {
    /// The watched target.
    public let target: PathTarget
    private let core: ValidationCore?
    private let watch: PathWatch

    /// Starts watching and probing.
    ///
    /// If the probe thread cannot be started because descriptors or threads are exhausted, every path is `failed`
    /// with the reason.
    ///
    /// - Parameters:
    ///   - monitor: The monitor that knows the paths. It should watch the network namespace of the process, because
    ///     the sockets of the built-in probes belong to that namespace.
    ///   - target: The target to watch.
    ///   - probe: The probe to run.
    ///   - interval: The time from the end of one probe to the start of the next over the same path. Default 30 s,
    ///     minimum 1 s. With `nil`, each path is probed once, and whenever ``check()`` is called.
    ///   - onUpdate: Called with the first status, with each status that differs from the previous one, and with each
    ///     result. Calls are serial. They run on the probe thread and must not block it.
    public init(
        monitor: PathMonitor = .shared,
        target: PathTarget,
        probe: any Probe,
        interval: Duration? = .seconds(30),
        onUpdate: @escaping @Sendable (ValidatedStatus) -> Void
    ) {
        self.target = target
        do {
            let core = ValidationCore(
                loop: try ProbeLoop.shared.get(),
                target: target,
                probe: probe,
                interval: interval,
                paths: { [weak monitor] in await monitor?.paths(to: target) ?? [] },
                onUpdate: onUpdate
            )
            self.core = core
            watch = monitor.watch(target) { core.take($0) }
        } catch {
            let failure = ProbeResult(.failed("\(error)"))
            core = nil
            watch = monitor.watch(target) { status in
                onUpdate(ValidatedStatus(status: status, probe: status.path.map { _ in failure }))
            }
        }
    }

    deinit {
        cancel()
    }

    /// Probes now, for example because a request failed. Does nothing while a probe is running or while there is no
    /// path. Starts at most one probe per second.
    public func check() {
        core?.check()
    }

    /// Ends the watch and cancels a running probe. The callback may still be running when this method returns, but is
    /// not called again.
    public func cancel() {
        watch.cancel()
        core?.stop()
    }
}

extension PathMonitor {
    /// Returns the statuses of a target with the results of a probe, starting with the current status. A slow reader
    /// gets only the newest one. Probing ends with the stream; see ``PathValidator``.
    ///
    /// - Parameters:
    ///   - target: The target to watch.
    ///   - probe: The probe to run.
    ///   - interval: The time between probes of the same path. Default 30 s, minimum 1 s. `nil` probes each path
    ///     once.
    public func validatedStatuses(
        of target: PathTarget,
        by probe: any Probe,
        every interval: Duration? = .seconds(30)
    ) -> AsyncStream<ValidatedStatus> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let validator = PathValidator(monitor: self, target: target, probe: probe, interval: interval) {
                continuation.yield($0)
            }
            continuation.onTermination = { _ in validator.cancel() }
        }
    }
}
