internal import Glibc
internal import NetwatchEventLoop

/// One run of a ``TCPProbe``, on the probe thread: connects to one of several addresses.
actor TCPAttempt {
    private let loop: EventLoop
    private let paths: [NetworkPath]
    private let port: UInt16
    private let timeout: Duration

    private var connector: Connector?
    private var timer: EventLoop.Timer?
    private var started: BootInstant?
    private var waiter: CheckedContinuation<ProbeResult, Never>?
    private var result: ProbeResult?

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(loop: EventLoop, paths: [NetworkPath], port: UInt16, timeout: Duration) {
        self.loop = loop
        self.paths = paths
        self.port = port
        self.timeout = timeout
    }

    /// Connects, closes the connection, and returns the result. Must be called only once.
    func run() async -> ProbeResult {
        await withCheckedContinuation { continuation in
            waiter = continuation
            if let result { resume(returning: result) } else { begin() }
        }
    }

    /// Cancels the attempt, even if it has not started yet. Can be called from any thread.
    nonisolated func cancel() {
        loop.execute(on: self) { $0.end(ProbeResult(.failed("cancelled"))) }
    }

    private func begin() {
        started = .now
        timer = loop.scheduleLimit(timeout) { [weak self] in
            self?.assumeIsolated { $0.timeOut() }
        }
        let race = ConnectionRace(paths.map(\.candidate))
        let connector = Connector(loop: loop, race: race, port: port) { [weak self] outcome in
            self?.assumeIsolated { $0.end($0.result(of: outcome)) }
        }
        self.connector = connector
        connector.assumeIsolated { $0.start() }
    }

    private func timeOut() {
        let failure = connector?.assumeIsolated { $0.stop() }
        let list = failure.map { $0.attempts.count > 1 ? " (\(Self.list($0)))" : "" } ?? ""
        end(ProbeResult(.failed("no connection within \(timeout)\(list)")))
    }

    private func result(of outcome: Connector.Outcome) -> ProbeResult {
        switch outcome {
        case .success: return ProbeResult(.valid, latency: elapsed)
        case .failure(let failure):
            // A refusal is an answer to the attempt, so it has a latency. Other errors come from this machine or from a
            // router on the path.
            let isRefused = failure.attempts.contains { $0.error?.errno == ECONNREFUSED }
            return ProbeResult(.failed(Self.message(for: failure)), latency: isRefused ? elapsed : nil)
        }
    }

    private var elapsed: Duration? {
        started.map { $0.duration(to: .now) }
    }

    private func end(_ result: ProbeResult) {
        guard self.result == nil else { return }
        self.result = result
        timer.map(loop.cancel)
        connector?.assumeIsolated { _ = $0.stop() }
        connector = nil
        resume(returning: result)
    }

    private func resume(returning result: ProbeResult) {
        waiter?.resume(returning: result)
        waiter = nil
    }

    /// Returns the error if only one address was tried, otherwise a list of the addresses with their errors.
    private static func message(for failure: ConnectionFailure) -> String {
        guard failure.attempts.count > 1 else {
            return failure.attempts.first?.error.map(message(for:)) ?? "no address"
        }
        return list(failure)
    }

    private static func list(_ failure: ConnectionFailure) -> String {
        let attempts = failure.attempts.map { "\($0.address): \($0.error.map(message(for:)) ?? "no answer")" }
        let rest = failure.untried.isEmpty ? [] : ["\(failure.untried.count) more were not tried"]
        return (attempts + rest).joined(separator: "; ")
    }

    private static func message(for error: SystemError) -> String {
        switch (error.call, error.errno) {
        case (_, ECONNREFUSED): "connection refused"
        case (_, ENODEV): "the interface no longer exists"
        case (_, EADDRNOTAVAIL): "the source address no longer exists"
        case ("connect", let errno): errnoDescription(errno).lowercased()
        default: "\(error)"
        }
    }
}
