public import Foundation
internal import NetwatchEventLoop

/// The times of a request.
///
/// Times are in seconds since 2001-01-01 00:00 UTC, like `Date`'s `timeIntervalSinceReferenceDate`. The wall clock is
/// read once, at the start of the request. A monotonic clock measures all later times from there, so setting the
/// system clock does not affect them. A duration is 0 if its end is before its start.
public struct Timeline: Hashable, Sendable {
    /// The time at which the request was started.
    public let requestStartTime: TimeInterval
    /// The time at which the head of the response arrived. Without a response, the time at which the transfer ended.
    public let initialResponseTime: TimeInterval
    /// The time at which the transfer ended.
    public let requestCompletedTime: TimeInterval
    /// The time at which serialization ended.
    public let serializationCompletedTime: TimeInterval

    /// The seconds from the start to the head of the response.
    public var latency: TimeInterval { Self.duration(requestStartTime, initialResponseTime) }

    /// The seconds from the start to the end of the transfer.
    public var requestDuration: TimeInterval { Self.duration(requestStartTime, requestCompletedTime) }

    /// The seconds from the end of the transfer to the end of serialization.
    public var serializationDuration: TimeInterval {
        Self.duration(requestCompletedTime, serializationCompletedTime)
    }

    /// The seconds from the start to the end of serialization.
    public var totalDuration: TimeInterval { Self.duration(requestStartTime, serializationCompletedTime) }

    /// Creates a timeline.
    ///
    /// - Parameters:
    ///   - requestStartTime: The time at which the request was started. Default 0.
    ///   - initialResponseTime: The time at which the head of the response arrived. Default 0.
    ///   - requestCompletedTime: The time at which the transfer ended. Default 0.
    ///   - serializationCompletedTime: The time at which serialization ended. Default 0.
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

    /// Creates a timeline from the wall-clock start time and monotonic durations since then.
    ///
    /// - Parameters:
    ///   - start: The time at which the request was started.
    ///   - firstByte: The duration until the head of the response. `nil` if there was no response; in that case the
    ///     latency is the duration of the whole transfer.
    ///   - completed: The duration until the end of the transfer.
    ///   - serialized: The duration until the end of serialization.
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
    /// The durations in seconds with three decimals, for example `Timeline: { "Latency": 0.428 secs, … }`.
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

/// The times of a request's events.
///
/// The wall clock is read once, when the request starts. The monotonic clock measures all later times from there, so
/// setting the system clock during a request has no effect on them.
struct RequestClock: Sendable {
    private var began: (moment: BootInstant, date: Date)?
    private var firstResponse: BootInstant?
    private var completed: BootInstant?

    /// Records the start. Only the first call counts.
    mutating func start() {
        if began == nil { began = (.now, Date()) }
    }

    /// Forgets when the previous attempt's response began, because another attempt starts.
    mutating func restart() {
        firstResponse = nil
    }

    mutating func responseBegan() {
        firstResponse = firstResponse ?? .now
    }

    mutating func complete() {
        completed = .now
    }

    /// The time since the request was first started.
    var elapsed: Duration { began.map { $0.moment.duration(to: .now) } ?? .zero }

    /// The timeline of the request. Its serialization ends at the time of the call.
    var timeline: Timeline {
        guard let began else { return Timeline() }
        return Timeline(
            start: began.date,
            firstByte: firstResponse.map { began.moment.duration(to: $0) },
            completed: began.moment.duration(to: completed ?? .now),
            serialized: began.moment.duration(to: .now)
        )
    }

    /// Converts a monotonic time to a date.
    func date(of moment: BootInstant) -> Date? {
        began.map { $0.date + $0.moment.duration(to: moment).inSeconds }
    }
}
