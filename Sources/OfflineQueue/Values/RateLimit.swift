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

/// The size limits of a queue.
public struct QueueLimits: Hashable, Sendable {
    /// The maximum number of unfinished requests, at least 1. Default 1,000,000.
    public var requests = 1_000_000
    /// The maximum size of all unfinished requests in bytes, at least 1. Default 4 GiB, so that a lane has room for
    /// several bodies of the maximum size (512 MiB).
    ///
    /// The size includes URLs, headers, bodies, and uploads that no request uses yet.
    public var bytes: Int64 = 4 << 30
    /// The share of ``requests`` and ``bytes`` that one lane may use: more than 0, at most 1. Default 0.5.
    public var laneShare = 0.5
    /// The number of bytes that new requests leave free on the file system, at least 0. Default 64 MiB.
    ///
    /// The queue needs this space to write the outcomes of requests. On a file system of less than ten times this
    /// size, the reserve is a tenth of the file system, but at least the 8 MiB that the database's log may use.
    public var diskReserve: Int64 = 64 << 20

    /// The beginning of the names of the limits in messages. Default: the names of this type in
    /// ``OfflineQueue/Configuration``.
    package var namePrefix = "limits."
    /// The name of ``diskReserve`` in messages, after ``namePrefix``.
    package var diskReserveName = "diskReserve"

    /// Creates the default limits.
    public init() {}
}

/// The action of a full queue when a request is enqueued. ``QueueLimits`` determines when a queue is full.
public enum FullQueuePolicy: String, Hashable, Sendable, CaseIterable {
    /// Refuses the request with ``QueueError/Code/queueFull``.
    case reject
    /// Gives up the oldest requests, except those in flight, until the new request fits.
    case dropOldest = "drop-oldest"
    /// Drops the new request. The outcome in its receipt is ``Receipt/Outcome/dropped``.
    case dropNewest = "drop-newest"
    /// Suspends the call until requests have finished or unused uploads were removed, so that the new request fits.
    /// Cancelling the caller's task ends the wait.
    case block
}

/// A limit that all users share, such as a number of slots or of bytes, and the parts of it that some of them may use.
///
/// Only root and the user of the service may use all of it. So one user leaves room for other users, and all of them
/// leave room for an administrator.
package struct SharedLimit: Hashable, Sendable {
    /// Whose use of a limit is counted.
    package enum Scope: Hashable, Sendable, CaseIterable {
        /// One user without full access: at most a quarter of the limit, and at least 1.
        case user
        /// All users without full access together: at most seven eighths of the limit.
        case users
        /// All users.
        case all

        /// Whose use is counted, as the end of a noun phrase.
        package var owner: String {
            switch self {
            case .user: " of one user"
            case .users: " of users without full access"
            case .all: ""
            }
        }
    }

    private let limit: Int

    package init(_ limit: Int) {
        self.limit = limit
    }

    /// Returns how much the users of a scope may use.
    package func value(for scope: Scope) -> Int {
        switch scope {
        case .user: max(1, limit / 4)
        case .users: limit - limit / 8
        case .all: limit
        }
    }
}
