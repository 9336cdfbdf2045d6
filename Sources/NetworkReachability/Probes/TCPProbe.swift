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
