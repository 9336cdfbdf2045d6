internal import Glibc
internal import NetwatchEventLoop

/// A probe that makes a TCP connection and closes it immediately, without sending data over it.
///
/// ```swift
/// for await result in PathMonitor.shared.validatedStatuses(of: .host(host), by: TCPProbe(port: 443)) {
///     print(result.status, result.validation, result.probe?.latency ?? .zero)
/// }
/// ```
///
/// The probe connects to the path's destination as programs do: the kernel chooses the route. Only an interface and a
/// source address that ``PathOptions`` require are bound. The sockets belong to the network namespace of the process.
///
/// If the host has several addresses, a ``PathValidator`` makes the probe try them in turn, as clients do (RFC 8305).
/// The next attempt starts 250 ms after the previous one, or as soon as the previous one fails.
///
/// Two results need care:
/// - A refused connection (`RST`) results in `failed("connection refused")` with a latency. The answer may come from
///   the host, or from a firewall in front of it.
/// - A captive portal that accepts every connection results in `valid`. To detect a portal, use a probe that checks
///   the content of a response.
public struct TCPProbe: Probe, RacingProbe {
    /// The range of timeouts: 10 ms to 60 s. Other values are replaced with the nearest one in the range.
    public static let acceptedTimeouts: ClosedRange<Duration> = .milliseconds(10)...Duration.seconds(60)

    /// The destination port.
    public let port: UInt16
    /// The timeout of one probe, for all addresses together.
    public let timeout: Duration
    private let loop: ProbeLoop

    /// Creates a probe. All TCP probes share one thread, which the first run starts.
    ///
    /// - Parameters:
    ///   - port: The destination port, 1 to 65535.
    ///   - timeout: The timeout of one probe, for all addresses together; see ``acceptedTimeouts``. Default: 3 s, which
    ///     leaves time to retransmit a lost first packet (after 1 s, RFC 6298 §2).
    public init(port: UInt16, timeout: Duration = .seconds(3)) {
        self.init(port: port, timeout: timeout, loop: .shared)
    }

    package init(port: UInt16, timeout: Duration = .seconds(3), loop: ProbeLoop) {
        self.port = port
        self.timeout = timeout.clamped(to: Self.acceptedTimeouts)
        self.loop = loop
    }

    /// The protocol and the port, such as `tcp 443`.
    public var name: String { "tcp \(port)" }

    package func destinationPort(for host: NetworkHost?) -> UInt16? { port }

    /// Connects to the destination of the path. `host` is ignored, because the path contains the address.
    public func run(to host: NetworkHost?, over path: NetworkPath) async -> ProbeResult {
        await run(to: host, over: [path])
    }

    package func run(to host: NetworkHost?, over paths: [NetworkPath]) async -> ProbeResult {
        do throws(SystemError) {
            let attempt = TCPAttempt(loop: try loop.get(), paths: paths, port: port, timeout: timeout)
            return await withTaskCancellationHandler {
                await attempt.run()
            } onCancel: {
                attempt.cancel()
            }
        } catch {
            return ProbeResult(.failed("\(error)"))
        }
    }
}

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
