internal import NetwatchEventLoop

/// Watches a target and probes the paths to it, as long as it is retained and not cancelled.
///
/// The probe runs when the target becomes reachable and when the path changes
/// (``PathStatus/pathGeneration``), then again after the interval, give or take 10 %. What is captive or
/// failed is tried again sooner: after 1 s, then 2 s, 4 s, … up to the interval, give or take 25 %. Two probes
/// never run at once, and start 250 ms apart at least. A probe whose path has gone is cancelled, and its
/// result dropped. Of all validators of the process 128 probe at the same time; others wait their turn.
///
/// A probe never changes what the kernel says: ``ValidatedStatus/status`` is what a watch would have told.
public final class PathValidator: Sendable {
    /// What is watched.
    public let target: PathTarget
    private let core: ValidationCore?
    private let watch: PathWatch

    /// Starts watching and probing.
    ///
    /// Where the probes' thread cannot be started, for want of descriptors or threads, every path is `failed`
    /// with the reason.
    ///
    /// - Parameters:
    ///   - monitor: Who knows the paths. It should watch the process's own network namespace, where the
    ///     sockets of the probes that come with this package belong.
    ///   - target: What to watch.
    ///   - probe: How to try a path.
    ///   - interval: The time from the end of one probe to the start of the next over the same path. Default
    ///     30 s, at least 1 s. `nil` probes each path once, and when ``check()`` asks for it.
    ///   - onUpdate: Called with the first status, with every one that differs from the one before, and with
    ///     each result. Calls come one at a time, on the probes' thread, and must not block it.
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

    /// Probes now, because a request just failed. It does nothing while a probe runs or there is no path, and
    /// starts a probe at most once a second.
    public func check() {
        core?.check()
    }

    /// Ends the watch and the probe that runs. The callback may be running while this returns, but is not
    /// called again.
    public func cancel() {
        watch.cancel()
        core?.stop()
    }
}

extension PathMonitor {
    /// The statuses of a target together with what a probe finds out, the present status first. Only the
    /// newest is kept for a slow reader. Probing ends with the stream; see ``PathValidator``.
    ///
    /// - Parameters:
    ///   - target: What to watch.
    ///   - probe: How to try a path.
    ///   - interval: How often to try the same path. Default 30 s, at least 1 s; `nil` is once.
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
