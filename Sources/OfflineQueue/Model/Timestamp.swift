package import Foundation
internal import Glibc

/// A wall-clock time in its stored form: milliseconds since 1970.
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

    /// About 30,000 years, in milliseconds.
    private static let farthest = 1e15

    package init(_ date: Date) {
        // A date may exceed the range of milliseconds or be NaN, so it is limited. NaN becomes far in the future.
        let milliseconds = (date.timeIntervalSince1970 * 1000).rounded()
        self.milliseconds = Int64(max(-Self.farthest, min(Self.farthest, milliseconds)))
    }

    package var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }

    package static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.milliseconds < right.milliseconds
    }

    /// Adds a duration. Rounds up, so that nothing is due too early.
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
