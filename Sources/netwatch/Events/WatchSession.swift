internal import NetwatchEventLoop
internal import NetwatchService
internal import NetworkReachability

/// The run of a command that receives values from other threads until it decides to end.
protocol WatchSession {
    associatedtype Value: Sendable
    associatedtype Outcome

    /// The buffer of the values.
    var inbox: Inbox<Value> { get }

    /// Takes the newest value of a source. Returns the outcome to end the run before it takes other values.
    mutating func take(_ value: Value, from source: Int, now: BootInstant) throws(CommandError) -> Outcome?

    /// Called after each wakeup, when all values are taken. Decides what the run does next.
    mutating func step(now: BootInstant) throws(CommandError) -> WatchStep<Outcome>
}

/// What a ``WatchSession`` does next.
enum WatchStep<Outcome> {
    case end(Outcome)
    /// Waits for a value; at most until this time, if there is one.
    case wait(until: BootInstant?)
}

extension WatchSession {
    /// Takes values until one of them, or a step, ends the run. Releases the sources of the values at the end.
    ///
    /// - Parameters:
    ///   - deadline: When to make a step without a value; `nil` for never.
    ///   - interval: How often to make a step without a value; `nil` for never.
    ///   - sources: Retained until the end of the run.
    mutating func watch(
        deadline: BootInstant? = nil,
        interval: Duration? = nil,
        _ sources: [AnyObject]
    ) async throws(CommandError) -> Outcome {
        let inbox = inbox
        let timer = try CommandTimer(deadline: deadline, interval: interval) { inbox.wake() }
        defer { withExtendedLifetime((timer, sources)) {} }
        for await _ in inbox.wakeups {
            let now = BootInstant.now
            for (source, value) in inbox.take() {
                if let outcome = try take(value, from: source, now: now) { return outcome }
            }
            switch try step(now: now) {
            case .end(let outcome): return outcome
            case .wait(nil): break
            case .wait(let due?): timer.reschedule(at: due)
            }
        }
        throw CommandError(.unknown, "the wait was cancelled")
    }
}

extension PathMonitor {
    /// Watches targets, and probes those that have a probe.
    ///
    /// - Parameters:
    ///   - onStatus: Called with the index of the target and its status. A path that was not probed yet has no result.
    /// - Returns: The watches, which last until they are released.
    func watch(
        _ targets: [PathTarget],
        probes: [(any Probe)?],
        interval: Duration = PathValidator.defaultInterval,
        onStatus: @escaping @Sendable (Int, ValidatedStatus) -> Void
    ) -> [AnyObject] {
        zip(targets, probes).enumerated().map { index, entry -> AnyObject in
            let (target, probe) = entry
            guard let probe else {
                return watch(target) { onStatus(index, ValidatedStatus(status: $0, probe: nil)) }
            }
            return PathValidator(monitor: self, target: target, probe: probe, interval: interval) {
                onStatus(index, $0)
            }
        }
    }
}

extension CommandError {
    /// Creates the error of a command whose wait has timed out.
    ///
    /// - Parameters:
    ///   - missing: What is not met, for people.
    ///   - count: The number of conditions that are not met.
    init(timedOutAfter timeout: Duration?, missing: some Sequence<String>, of count: Int) {
        let missing = Array(missing)
        let more = count > missing.count ? ["and \(count - missing.count) more"] : []
        let after = DurationText.format(timeout ?? .zero)
        self.init(.no, "timed out after \(after): " + (missing + more).joined(separator: ", "))
    }
}
