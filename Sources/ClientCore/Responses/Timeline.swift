public import Foundation

/// When what happened to a request.
///
/// Times are seconds since the reference date (2001-01-01 00:00 UTC), as of `Date`'s
/// `timeIntervalSinceReferenceDate`. A request reads the wall clock once, at its start; what follows is
/// that plus the time that has gone by on the monotonic clock, so that setting the clock changes none of
/// it. A duration is never negative, whatever times it is made of.
public struct Timeline: Hashable, Sendable {
    /// When the request was started.
    public let requestStartTime: TimeInterval
    /// When the first byte was sent or received.
    public let initialResponseTime: TimeInterval
    /// When the transfer had ended.
    public let requestCompletedTime: TimeInterval
    /// When the response had been serialized.
    public let serializationCompletedTime: TimeInterval

    /// Seconds from the start to the first byte.
    public var latency: TimeInterval { Self.duration(requestStartTime, initialResponseTime) }

    /// Seconds from the start to the end of the transfer.
    public var requestDuration: TimeInterval { Self.duration(requestStartTime, requestCompletedTime) }

    /// Seconds from the end of the transfer to the end of serialization.
    public var serializationDuration: TimeInterval {
        Self.duration(requestCompletedTime, serializationCompletedTime)
    }

    /// Seconds from the start to the end of serialization.
    public var totalDuration: TimeInterval { Self.duration(requestStartTime, serializationCompletedTime) }

    /// Puts a timeline together.
    ///
    /// - Parameters:
    ///   - requestStartTime: When the request was started. Default 0.
    ///   - initialResponseTime: When the first byte was sent or received. Default 0.
    ///   - requestCompletedTime: When the transfer had ended. Default 0.
    ///   - serializationCompletedTime: When the response had been serialized. Default 0.
    public init(
        requestStartTime: TimeInterval = 0,
        initialResponseTime: TimeInterval = 0,
        requestCompletedTime: TimeInterval = 0,
        serializationCompletedTime: TimeInterval = 0
    ) {
        self.requestStartTime = requestStartTime
        self.initialResponseTime = initialResponseTime
        self.requestCompletedTime = requestCompletedTime
        self.serializationCompletedTime = serializationCompletedTime
    }

    /// Puts a timeline together of one reading of the wall clock and of monotonic durations since then.
    ///
    /// - Parameters:
    ///   - start: When the request was started.
    ///   - firstByte: How long it took to the first byte; `nil` when there was none, which makes the whole
    ///     transfer its latency.
    ///   - completed: How long it took to the end of the transfer.
    ///   - serialized: How long it took to the end of serialization.
    package init(start: Date, firstByte: Duration?, completed: Duration, serialized: Duration) {
        let start = start.timeIntervalSinceReferenceDate
        self.init(
            requestStartTime: start,
            initialResponseTime: start + (firstByte ?? completed) / .seconds(1),
            requestCompletedTime: start + completed / .seconds(1),
            serializationCompletedTime: start + serialized / .seconds(1)
        )
    }

    private static func duration(_ from: TimeInterval, _ to: TimeInterval) -> TimeInterval {
        let difference = to - from
        return difference > 0 ? difference : 0
    }
}

extension Timeline: CustomStringConvertible {
    /// `Timeline: { "Latency": 0.428 secs, … }`: the durations, in seconds with three decimals.
    public var description: String { Self.text(durations) }

    private var durations: [(String, TimeInterval)] {
        [
            ("Latency", latency), ("Request Duration", requestDuration),
            ("Serialization Duration", serializationDuration), ("Total Duration", totalDuration),
        ]
    }

    private static func text(_ entries: [(String, TimeInterval)]) -> String {
        let entries = entries.map { "\"\($0.0)\": \(String(format: "%.3f", $0.1)) secs" }
        return "Timeline: { \(entries.joined(separator: ", ")) }"
    }
}

extension Timeline: CustomDebugStringConvertible {
    /// The times and then the durations, in seconds with three decimals.
    public var debugDescription: String { Self.text(times + durations) }

    private var times: [(String, TimeInterval)] {
        [
            ("Request Start Time", requestStartTime), ("Initial Response Time", initialResponseTime),
            ("Request Completed Time", requestCompletedTime),
            ("Serialization Completed Time", serializationCompletedTime),
        ]
    }
}
