internal import Glibc

/// A point in time of `CLOCK_BOOTTIME` (clock_gettime(2)), which also counts while the machine is suspended.
///
/// `ContinuousClock.Instant` is the same time, but holds 128 bits, and its layout is known only at run time, so that
/// each structure with such a member is copied by generic code. This type is one integer, and other modules compare its
/// values without a call.
package struct BootInstant: InstantProtocol {
    /// The time since the start of the machine, in nanoseconds. The range ends after 292 years.
    package let nanoseconds: Int64

    @inlinable package init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// The current time.
    package static var now: BootInstant {
        var time = timespec()
        // This fails only for an unknown clock (clock_gettime(2)), which would be a bug.
        let result = clock_gettime(CLOCK_BOOTTIME, &time)
        precondition(result == 0, "clock_gettime: \(errnoDescription(errno))")
        return BootInstant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// Returns the time after a duration, rounded down to nanoseconds. Durations that exceed the range lead to its
    /// first or last instant.
    package func advanced(by duration: Duration) -> BootInstant {
        let (sum, overflow) = nanoseconds.addingReportingOverflow(duration.wholeNanoseconds)
        guard overflow else { return BootInstant(nanoseconds: sum) }
        return BootInstant(nanoseconds: duration < .zero ? .min : .max)
    }

    package func duration(to other: BootInstant) -> Duration {
        let (difference, overflow) = other.nanoseconds.subtractingReportingOverflow(nanoseconds)
        return .nanoseconds(overflow ? (other < self ? .min : .max) : difference)
    }

    @inlinable package static func < (first: BootInstant, second: BootInstant) -> Bool {
        first.nanoseconds < second.nanoseconds
    }

    package static func + (instant: BootInstant, duration: Duration) -> BootInstant {
        instant.advanced(by: duration)
    }

    package static func - (instant: BootInstant, duration: Duration) -> BootInstant {
        instant.advanced(by: .zero - duration)
    }

    package static func - (end: BootInstant, start: BootInstant) -> Duration {
        start.duration(to: end)
    }
}

extension Duration {
    /// The duration in nanoseconds, rounded down. Durations of more than 292 years are limited to that.
    fileprivate var wholeNanoseconds: Int64 {
        let (quotient, remainder) = attoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return Int64(clamping: remainder < 0 ? quotient - 1 : quotient)
    }
}
