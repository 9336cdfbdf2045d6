package import Foundation
internal import Glibc

/// A wall-clock time in milliseconds since 1970, the form in which the database stores times.
package struct Timestamp: Hashable, Comparable, Sendable {
    package let milliseconds: Int64

    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    /// The current time, from `clock_gettime(CLOCK_REALTIME)`.
    package static var now: Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }

    /// The maximum distance of a timestamp from 1970 in milliseconds: about 30,000 years.
    static let farthest: Int64 = 1_000_000_000_000_000

    package init(_ date: Date) {
        // `Int64(_:)` would crash if a date were NaN or out of range. NaN becomes the farthest time in the future.
        let milliseconds = (date.timeIntervalSince1970 * 1000).rounded()
        let farthest = Double(Self.farthest)
        self.milliseconds = Int64(max(-farthest, min(farthest, milliseconds)))
    }

    package var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }

    package static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.milliseconds < right.milliseconds
    }

    /// Returns the time after a duration, rounded up to a millisecond so that nothing is due too early.
    package static func + (moment: Timestamp, duration: Duration) -> Timestamp {
        let (seconds, attoseconds) = duration.components
        let milliseconds = (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
        return Timestamp(milliseconds: moment.milliseconds + seconds * 1000 + milliseconds)
    }

    package static func - (moment: Timestamp, duration: Duration) -> Timestamp {
        moment + (.zero - duration)
    }

    package static func - (left: Timestamp, right: Timestamp) -> Duration {
        .milliseconds(left.milliseconds - right.milliseconds)
    }
}
