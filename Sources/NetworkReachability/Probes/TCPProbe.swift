internal import NetwatchEventLoop

/// Finds out whether a TCP connection can be made.
///
/// It goes to the path's destination, from the path's interface and source address, and is closed as soon as
/// it is made; nothing is sent over it. A ``PathValidator`` also tries the other addresses of its host, each over the path
/// to it, as a client does (RFC 8305): 250 ms apart, at once after a failure. Sockets belong to the process's own network
/// namespace.
///
/// A refusal (`RST`) counts as `failed("connection refused")`: something answered, and the result has a
/// latency to show for it, but it may have been a firewall near by. A portal that takes every connection
/// counts as `valid`; to detect one, use a probe that knows what the answer should be.
public struct TCPProbe: Probe, RacingProbe {
    /// How long an attempt may take: 10 ms to 60 s.
    public static let acceptedTimeouts: ClosedRange<Duration> = .milliseconds(10)...Duration.seconds(60)

    /// The port that is connected to.
    public let port: UInt16
    /// How long an attempt may take.
    public let timeout: Duration
    private let loop: ProbeLoop

    /// Makes a probe. Its thread, which all TCP probes share, starts with the first attempt.
    ///
    /// - Parameters:
    ///   - port: The port, 1 to 65535.
    ///   - timeout: How long an attempt may take. Default 3 s, in which a lost first packet is sent again
    ///     (RFC 6298 §2 has the initial timeout of 1 s). Values outside ``acceptedTimeouts`` are brought
    ///     into it.
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

    /// Makes one connection. The host does not matter: the path names the address.
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

extension Duration {
    /// The nearest duration within the range.
    package func clamped(to range: ClosedRange<Duration>) -> Duration {
        min(max(self, range.lowerBound), range.upperBound)
    }
}

extension NetworkPath {
    /// The destination and what ties a socket to this path.
    package var candidate: ConnectionCandidate {
        let needsZone = destination.isLinkLocal && destination.zone == 0
        return ConnectionCandidate(
            needsZone ? destination.inZone(interfaceIndex) : destination,
            binding: binding
        )
    }

    /// What ties a socket to this path.
    package var binding: SocketBinding {
        // What is for this machine goes by loopback, and bound to that a socket finds nobody else's address.
        SocketBinding(
            interfaceIndex: isLocal ? 0 : interfaceIndex,
            source: source,
            family: destination.family
        )
    }
}
