internal import Foundation
internal import NetwatchEventLoop

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
