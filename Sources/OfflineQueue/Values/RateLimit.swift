internal import Foundation

/// The maximum rate of requests, in all lanes together or to one host.
///
/// Each attempt counts, retries included. A request is never sent earlier than the rate permits.
public struct RateLimit: Hashable, Sendable {
    /// The name or address of the host; `nil` for all hosts together.
    public let host: String?
    /// The number of requests per second: 0.0001 to 100,000.
    public let requestsPerSecond: Double
    /// The number of requests that may be sent at once after a pause: 1 to 100,000.
    public let burst: Int

    /// A description of the text that ``init(parsing:)`` accepts, for error messages.
    public static let acceptedForm =
        "a rate like `10/s`, `example.com=30/m` or `example.com=2/s,burst=20`, with the units s, m and h"

    private static let range = 1e-4...1e5

    /// Creates a limit of the requests per second to a host.
    ///
    /// - Parameters:
    ///   - requestsPerSecond: The number of requests per second: 0.0001 to 100,000.
    ///   - host: The name or address of the host, without a port. A pattern is refused. Default `nil`: all hosts
    ///     together.
    ///   - burst: The number of requests that may be sent at once after a pause: 1 to 100,000. Default `nil`: the
    ///     number of requests per second, rounded up.
    /// - Throws: ``QueueError`` with `invalidConfiguration` for a rate or a burst out of range, or a text that is not a
    ///   host.
    public init(_ requestsPerSecond: Double, to host: String? = nil, burst: Int? = nil) throws(QueueError) {
        guard Self.range.contains(requestsPerSecond) else {
            throw QueueError(
                .invalidConfiguration,
                "the rate is \(requestsPerSecond)/s; it must be 0.0001/s to 100,000/s"
            )
        }
        let burst = burst ?? Int(requestsPerSecond.rounded(.up))
        guard (1...100_000).contains(burst) else {
            throw QueueError(.invalidConfiguration, "the burst is \(burst); it must be 1 to 100,000")
        }
        if let host, !Self.isHost(host) {
            throw HostText.refusal(of: host)
        }
        (self.host, self.requestsPerSecond, self.burst) = (host, requestsPerSecond, burst)
    }

    private static func isHost(_ text: String) -> Bool {
        // An IPv6 address contains at least two colons. A single colon precedes a port.
        !text.isEmpty && text.count { $0 == ":" } != 1 && HostText.isValid(text)
            && !text.contains { $0.isWhitespace }
    }

    /// Parses a text such as `example.com=30/m,burst=5`.
    ///
    /// - Throws: ``QueueError`` with `invalidConfiguration` and a message that quotes the text.
    public init(parsing text: String) throws(QueueError) {
        let refusal = QueueError(.invalidConfiguration, "\(quoted(text)) is not \(Self.acceptedForm)")
        let parts = text.split(separator: ",", omittingEmptySubsequences: false)
        let pair = parts[0].split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count <= 2, let rate = Self.rate(pair.last!) else { throw refusal }
        var burst: Int?
        if parts.count == 2 {
            guard parts[1].hasPrefix("burst="), let number = Int(parts[1].dropFirst(6)) else {
                throw refusal
            }
            burst = number
        }
        try self.init(rate, to: pair.count == 2 ? String(pair[0]) : nil, burst: burst)
    }

    private static func rate(_ text: Substring) -> Double? {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        let units = ["s": 1.0, "m": 60, "h": 3600]
        guard parts.count == 2, let number = Double(parts[0]), let unit = units[String(parts[1])] else {
            return nil
        }
        return number / unit
    }
}
