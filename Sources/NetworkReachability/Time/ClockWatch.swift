internal import Glibc

/// The readings of the kernel's clocks at one moment. The time of day is not among them, because setting it says nothing
/// about the network.
struct ClockReading: Hashable, Sendable {
    /// Stops while the machine is suspended.
    var monotonic: Duration
    /// Continues while the machine is suspended.
    var boottime: Duration

    /// The duration after which a reading is repeated: 1 ms. It is far shorter than ``ClockWatch/minSuspension``.
    private static let acceptedDuration: Duration = .milliseconds(1)

    /// Reads the clocks.
    ///
    /// If the thread is preempted between two clocks, their difference is wrong. So a reading that takes too long is
    /// repeated up to three times, and the fastest one is returned.
    static func now() -> ClockReading {
        var (fastest, duration) = timedReading()
        for _ in 0..<3 where duration > acceptedDuration {
            let (reading, time) = timedReading()
            if time < duration { (fastest, duration) = (reading, time) }
        }
        return fastest
    }

    private static func timedReading() -> (reading: ClockReading, duration: Duration) {
        let reading = ClockReading(
            monotonic: read(CLOCK_MONOTONIC),
            boottime: read(CLOCK_BOOTTIME)
        )
        return (reading, read(CLOCK_MONOTONIC) - reading.monotonic)
    }

    private static func read(_ clock: clockid_t) -> Duration {
        var time = timespec()
        // Fails only for an invalid clock ID.
        clock_gettime(clock, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}

/// Detects suspensions by comparing clock readings. A pure value.
struct ClockWatch: Sendable {
    /// The shortest time that counts as a suspension: 100 ms.
    ///
    /// This is far longer than the time between two clock reads, and shorter than any real suspension.
    static let minSuspension: Duration = .milliseconds(100)

    private var last: ClockReading

    init(_ first: ClockReading) {
        last = first
    }

    /// Returns for how long the machine was suspended since the previous reading, and stores this one. Returns `nil` if
    /// it was not suspended.
    mutating func suspension(until reading: ClockReading) -> Duration? {
        let suspended = reading.suspended - last.suspended
        last = reading
        return suspended >= Self.minSuspension ? suspended : nil
    }
}

extension ClockReading {
    /// The total time for which the machine has been suspended since boot.
    fileprivate var suspended: Duration { boottime - monotonic }
}
