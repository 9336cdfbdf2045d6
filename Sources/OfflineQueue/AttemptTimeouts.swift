/// How long the parts of one attempt may take. Each is 1 ms to 24 hours.
///
/// The engine looks at ``response`` once a second, so that it may take up to two seconds longer.
public struct AttemptTimeouts: Hashable, Sendable {
    /// How long the name lookup, the connection and the TLS handshake may take together. Default 15 s.
    public var connect: Duration = .seconds(15)
    /// How long the server may be silent between the request's last byte, as the kernel takes it, and the first byte of the
    /// answer. Default 5 minutes.
    ///
    /// An attempt that ends so may still be executed. The next one waits for as long as this timeout was, and has twice as
    /// much time, up to an hour.
    public var response: Duration = .seconds(300)
    /// How long the attempt may take in all. Default `nil`: 10 minutes and ``response`` together, and longer for a large
    /// body, as if it were sent at 8 KiB/s.
    public var total: Duration?

    /// Makes timeouts; see the properties for the defaults.
    public init() {}
}

extension AttemptTimeouts {
    package static let longest: Duration = .seconds(86_400)
    package static let range: ClosedRange<Duration> = .milliseconds(1)...longest

    /// No attempt gets more time than this by itself.
    private static let longestStretched: Duration = .seconds(3600)

    /// The total for a body of so many bytes. A server that drips a byte now and then must not hold its lane, and a slow
    /// link must get a large body through.
    package func longest(sending bytes: Int64) -> Duration {
        total ?? .seconds(600 + bytes / 8192) + response
    }

    /// The timeouts of the next attempt, after so many were cut while the server may still have been executing them.
    package func stretched(by overruns: Int) -> AttemptTimeouts {
        func stretch(_ timeout: Duration) -> Duration {
            max(timeout, min(Self.longestStretched, timeout * (1 << min(max(overruns, 0), 30))))
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

// MARK: - As the store keeps them

extension AttemptTimeouts {
    /// Milliseconds by name, `response=600000,total=900000`, without the defaults; `nil` when there are no others.
    package var stored: String? {
        let usual = AttemptTimeouts()
        var parts: [String] = []
        if connect != usual.connect { parts.append("connect=\(connect.positiveMilliseconds)") }
        if response != usual.response { parts.append("response=\(response.positiveMilliseconds)") }
        if let total { parts.append("total=\(total.positiveMilliseconds)") }
        return parts.isEmpty ? nil : parts.joined(separator: ",")
    }

    /// Reads ``stored``. What cannot be read, because a hand has edited it, is the default.
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
    /// Whole milliseconds, rounded up.
    fileprivate var positiveMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    }
}
