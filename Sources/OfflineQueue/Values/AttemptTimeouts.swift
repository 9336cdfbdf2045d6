internal import NetwatchEventLoop

/// The timeouts of one attempt, 1 ms to 24 hours each.
///
/// The HTTP client checks ``response`` once a second, so this timeout may take effect up to two seconds late.
public struct AttemptTimeouts: Hashable, Sendable {
    /// The maximum time for name lookup, connecting and TLS handshake together. Default 15 s.
    public var connect: Duration = .seconds(15)
    /// The maximum time between the last byte of the request and the first byte of the response. Default 5 minutes.
    ///
    /// The time begins when the kernel has accepted the last byte. When this timeout ends an attempt, the server may
    /// still be executing the request. The queue therefore waits for the same time again before the next attempt, and
    /// doubles the timeout of that attempt, up to an hour.
    public var response: Duration = .seconds(300)
    /// The maximum time for the whole attempt. Default `nil`: 10 minutes plus ``response``, plus the time that a body
    /// of more than 64 KiB takes at 8 KiB/s.
    public var total: Duration?

    /// Creates timeouts; see the properties for the defaults.
    public init() {}
}

extension AttemptTimeouts {
    package static let longest: Duration = .seconds(86_400)
    package static let range: ClosedRange<Duration> = .milliseconds(1)...longest
    /// The ``range`` in words.
    static let accepted = "1 ms to 24 hours"

    /// The maximum to which ``extended(by:)`` doubles a timeout: 1 hour.
    private static let maximumExtended: Duration = .seconds(3600)

    /// Returns the maximum time for an attempt that sends a body of this many bytes.
    ///
    /// A server that sends its response byte by byte would otherwise keep the attempt, and a slot of the lane, busy for
    /// ever. The limit grows with the request's body, so that a slow link can carry a large body.
    package func longest(sending bytes: Int64) -> Duration {
        total ?? .seconds(600 + bytes / 8192) + response
    }

    /// Returns the timeouts of the next attempt: ``response`` and ``total`` double with each overrun, up to an hour.
    ///
    /// - Parameter overruns: The number of attempts that a timeout ended while the server may still have been executing
    ///   the request.
    package func extended(by overruns: Int) -> AttemptTimeouts {
        func stretch(_ timeout: Duration) -> Duration {
            max(timeout, timeout.doubled(times: overruns, upTo: Self.maximumExtended))
        }
        var timeouts = self
        timeouts.response = stretch(response)
        timeouts.total = total.map(stretch)
        return timeouts
    }

    func check() throws(QueueError) {
        let given: [(String, Duration?)] = [("connect", connect), ("response", response), ("total", total)]
        for case (let name, let timeout?) in given {
            guard !Self.range.contains(timeout) else { continue }
            throw QueueError(
                .invalidOption,
                "the \(name) timeout is \(timeout.words); it must be \(Self.accepted)"
            )
        }
    }
}

/// The failures that an accepted request survives.
public enum Durability: String, Hashable, Sendable, CaseIterable {
    /// The request survives a process crash and a power loss, because it was synced to disk.
    case full
    /// The request survives a process crash. A power loss may lose the latest requests. Enqueuing is faster on a disk
    /// that syncs slowly.
    case normal
}
