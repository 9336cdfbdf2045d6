internal import NetwatchEventLoop

/// A probe that checks whether a TCP connection can be made.
///
/// It connects to the path's destination from the path's interface and source address. It closes the connection
/// immediately and sends nothing over it. A ``PathValidator`` also tries the other addresses of its host over their
/// paths, as clients do (RFC 8305): 250 ms apart, and immediately after a failure. The sockets belong to the network
/// namespace of the process.
///
/// A refusal (`RST`) counts as `failed("connection refused")`. The result then has a latency, because something
/// answered, but that may have been a nearby firewall. A portal that accepts every connection counts as `valid`. To
/// detect a portal, use a probe that knows the expected answer.
public struct TCPProbe: Probe, RacingProbe {
    /// The accepted range of timeouts: 10 ms to 60 s.
    public static let acceptedTimeouts: ClosedRange<Duration> = .milliseconds(10)...Duration.seconds(60)

    /// The destination port.
    public let port: UInt16
    /// The timeout of an attempt.
    public let timeout: Duration
    private let loop: ProbeLoop

    /// Creates a probe. All TCP probes share one thread, which starts with the first attempt.
    ///
    /// - Parameters:
    ///   - port: The port, 1 to 65535.
    ///   - timeout: The timeout of an attempt. Default 3 s, which allows a lost first packet to be retransmitted (the
    ///     initial timeout is 1 s, RFC 6298 §2). Values outside ``acceptedTimeouts`` are clamped.
    public init(port: UInt16, timeout: Duration = .seconds(3)) {
        self.init(port: port, timeout: timeout, loop: .shared)
    }

    package init(port: UInt16, timeout: Duration = .seconds(3), loop: ProbeLoop) {
        self.port = port
        self.timeout = timeout.clamped(to: Self.acceptedTimeouts)
        self.loop = loop
    }

    /// The protocol and the port: `tcp 443`.
    public var name: String { "tcp \(port)" }

    /// Makes one connection. `host` is ignored, because the path contains the address.
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
