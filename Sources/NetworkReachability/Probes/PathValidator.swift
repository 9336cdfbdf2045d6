internal import NetwatchEventLoop

/// A watch of one target that also probes its path. It lasts until it is cancelled or released.
///
/// ```swift
/// let validator = PathValidator(target: .host(host), probe: TCPProbe(port: 22)) { result in
///     print(result.status.isReachable, result.validation)
/// }
/// // Later:
/// validator.cancel()
/// ```
///
/// A probe runs in these cases:
/// - when the target becomes reachable, and when its path changes (``PathStatus/pathGeneration``);
/// - after a result ``PathValidation/valid``: again after the interval, ±10 %;
/// - after a captive or failed result: again after 1 s, 2 s, 4 s, … up to the interval, ±25 %;
/// - when ``check()`` is called.
///
/// The probes of one validator never overlap, and start at least 250 ms apart. When the path is lost, the running probe
/// is cancelled and its result is dropped. At most 128 probes run at once in the process, and the others wait.
///
/// A probe does not change the reachability: ``ValidatedStatus/status`` is the same status that a ``PathWatch``
/// delivers. For a ``TCPProbe`` or an `HTTPProbe` (ClientCore), it is the status of a watch with the port of the probe
/// (``PathOptions/port``).
public final class PathValidator: Sendable {
    /// The default time from the end of one probe to the start of the next one over the same path: 30 s. No
    /// standard defines it.
    public static let defaultInterval: Duration = .seconds(30)

    /// The watched target.
    public let target: PathTarget
    private let core: ValidationCore?
    private let watch: PathWatch

    /// Starts watching and probing.
    ///
    /// If the process has no descriptors or threads left for the probe thread, nothing is probed. The validation of
    /// every path is then ``PathValidation/failed(_:)`` with this reason.
    ///
    /// - Parameters:
    ///   - monitor: The monitor that watches the target. It should watch the network namespace of the process, because
    ///     the sockets of the built-in probes belong to that namespace. Default: the shared monitor of the process.
    ///   - target: The target to watch.
    ///   - probe: The probe to run.
    ///   - interval: The time from the end of one probe to the start of the next one over the same path. Default: 30 s.
    ///     Minimum: 1 s. With `nil`, each path is probed only once, unless ``check()`` is called.
    ///   - onUpdate: Called on the probe thread, which it must not block: first with the current status, then with each
    ///     new status and with each result. The calls do not overlap.
    @preconcurrency
    public init(
        monitor: PathMonitor = .shared,
        target: PathTarget,
        probe: any Probe,
        interval: Duration? = PathValidator.defaultInterval,
        onUpdate: @escaping @Sendable (ValidatedStatus) -> Void
    ) {
        self.target = target
        var options = PathOptions()
        let host: NetworkHost? = if case .host(let host) = target { host } else { nil }
        options.port = (probe as? any RacingProbe)?.destinationPort(for: host)
        do {
            let core = ValidationCore(
                loop: try ProbeLoop.shared.get(),
                target: target,
                probe: probe,
                interval: interval,
                paths: { [weak monitor, options] in await monitor?.paths(to: target, options) ?? [] },
                onUpdate: onUpdate
            )
            self.core = core
            watch = monitor.watch(target, options: options) { core.take($0) }
        } catch {
            let failure = ProbeResult(.failed("\(error)"))
            core = nil
            watch = monitor.watch(target, options: options) { status in
                onUpdate(ValidatedStatus(status: status, probe: status.path.map { _ in failure }))
            }
        }
    }

    deinit {
        cancel()
    }

    /// Probes the path as soon as possible, for example because a request failed.
    ///
    /// The probe starts at least 1 s after the start of the previous one. Has no effect while a probe is running or
    /// while there is no path.
    public func check() {
        core?.check()
    }

    /// Ends the watch and cancels a running probe.
    ///
    /// If the probe thread is just delivering a status or a result, the callback may still run after this method
    /// returns. After that it is not called again.
    public func cancel() {
        watch.cancel()
        core?.stop()
    }
}

extension PathMonitor {
    /// Watches a target and probes its path as ``PathValidator`` does. Returns the statuses and results as a sequence.
    ///
    /// The first element is the current status. A slow reader gets only the newest element. The sequence does not end
    /// by itself. Probing ends when the iteration ends or its task is cancelled.
    ///
    /// - Parameters:
    ///   - target: The target to watch.
    ///   - probe: The probe to run.
    ///   - interval: The time from the end of one probe to the start of the next one over the same path. Default: 30 s.
    ///     Minimum: 1 s. With `nil`, each path is probed once.
    public func validatedStatuses(
        of target: PathTarget,
        by probe: any Probe,
        every interval: Duration? = PathValidator.defaultInterval
    ) -> AsyncStream<ValidatedStatus> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let validator = PathValidator(monitor: self, target: target, probe: probe, interval: interval) {
                continuation.yield($0)
            }
            continuation.onTermination = { _ in validator.cancel() }
        }
    }
}

/// The event loop of the probes. The first use starts its thread.
package final class ProbeLoop: Sendable {
    /// The shared loop in the network namespace of the process.
    package static let shared = ProbeLoop()

    private let networkNamespace: String?
    private let started = Lock<EventLoop?>(nil)

    /// - Parameter networkNamespace: The path of the network namespace of the probes' sockets. Default: `nil`, the
    ///   namespace of the process.
    package init(networkNamespace: String? = nil) {
        self.networkNamespace = networkNamespace
    }

    /// Returns the loop. Starts its thread if that has not been done before.
    ///
    /// - Throws: ``SystemError`` if the thread cannot be started. The next call tries again.
    func get() throws(SystemError) -> EventLoop {
        try started.withLock { loop throws(SystemError) in
            if let loop { return loop }
            let new = try EventLoop(label: "nw-probe", networkNamespace: networkNamespace)
            loop = new
            return new
        }
    }
}
