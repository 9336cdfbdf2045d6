internal import NetwatchEventLoop

/// The timeouts of one attempt. Each is 1 ms to 24 hours.
///
/// The engine checks ``response`` once a second, so that timeout may take effect up to two seconds late.
public struct AttemptTimeouts: Hashable, Sendable {
    /// The time limit for name lookup, connection and TLS handshake together. Default 15 s.
    public var connect: Duration = .seconds(15)
    /// The time limit between the request's last byte, as accepted by the kernel, and the first byte of the response.
    /// Default 5 minutes.
    ///
    /// The server may still execute an attempt that this timeout ended. The next attempt starts after the same time
    /// again, and its timeout is twice as long, up to an hour.
    public var response: Duration = .seconds(300)
    /// The time limit for the whole attempt. Default `nil`: 10 minutes plus ``response``, plus the time that the body
    /// takes at 8 KiB/s.
    public var total: Duration?

    /// Creates timeouts; see the properties for the defaults.
    public init() {}
}

extension AttemptTimeouts {
    package static let longest: Duration = .seconds(86_400)
    package static let range: ClosedRange<Duration> = .milliseconds(1)...longest

    /// The maximum of a timeout that is extended automatically.
    private static let maximumExtended: Duration = .seconds(3600)

    /// Returns the time limit for the whole attempt, for a body of this many bytes. It stops a server that drips bytes
    /// from occupying its lane, and lets a large body pass over a slow link.
    package func longest(sending bytes: Int64) -> Duration {
        total ?? .seconds(600 + bytes / 8192) + response
    }

    /// Returns the timeouts of the next attempt. `overruns` is the number of attempts that were cut while the server
    /// may still have executed them.
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
                "the \(name) timeout of \(timeout.words) is not 1 ms to 24 hours"
            )
        }
    }
}

// MARK: - Stored form

extension AttemptTimeouts {
    /// The timeouts in milliseconds by name, such as `response=600000,total=900000`, without defaults; `nil` if all are
    /// defaults.
    package var stored: String? {
        let usual = AttemptTimeouts()
        var parts: [String] = []
        if connect != usual.connect { parts.append("connect=\(connect.positiveMilliseconds)") }
        if response != usual.response { parts.append("response=\(response.positiveMilliseconds)") }
        if let total { parts.append("total=\(total.positiveMilliseconds)") }
        return parts.isEmpty ? nil : parts.joined(separator: ",")
    }

    /// Reads ``stored``. A part that cannot be read, because the database was edited by hand, is replaced with its
    /// default.
    package init(stored text: String?) {
        self.init()
        for part in (text ?? "").split(separator: ",") {
            let pair = part.split(separator: "=", maxSplits: 1)
            guard pair.count == 2, let number = Int64(pair[1]) else { continue }
            let timeout = min(max(.milliseconds(1), .milliseconds(number)), Self.longest)
            switch pair[0] {
            case "connect": connect = timeout
            case "response": response = timeout
            case "total": total = timeout
            default: break
            }
        }
    }
}

extension Duration {
    /// The duration in whole milliseconds, rounded up.
    fileprivate var positiveMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    }
}
