internal import Glibc

/// The readings of the kernel's three clocks at one moment.
struct ClockReading: Hashable, Sendable {
    /// Stops while the machine is suspended.
    var monotonic: Duration
    /// Continues while the machine is suspended.
    var boottime: Duration
    /// The time of day, which can be set.
    var realtime: Duration

    /// The duration after which a reading is repeated: 1 ms. It is far shorter than ``ClockWatch/minSuspension``.
    private static let acceptedDuration: Duration = .milliseconds(1)

    /// Reads the three clocks.
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
            boottime: read(CLOCK_BOOTTIME),
            realtime: read(CLOCK_REALTIME)
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

/// Detects suspensions and clock steps by comparing clock readings. A pure value.
struct ClockWatch: Sendable {
    /// What happened since the previous reading.
    enum Event: Hashable, Sendable {
        /// The machine was suspended for this long.
        case resumed(after: Duration)
        /// The time of day jumped by this much, forwards if positive. A virtual machine that was paused notices the
        /// pause only when its clock is set.
        case clockStepped(by: Duration)
    }

    /// The shortest time that counts as a suspension: 100 ms.
    ///
    /// This is far longer than the time between two clock reads, and shorter than any real suspension.
    static let minSuspension: Duration = .milliseconds(100)

    /// The smallest change of the time of day that counts as a step: 2 s.
    ///
    /// The value is larger than a leap second and than the steps by which time daemons correct a running clock:
    /// 0.128 s in ntpd, 0.4 s in systemd-timesyncd, 1 s in the usual settings of chrony. It is smaller than any pause
    /// of a virtual machine that breaks a path.
    ///
    /// Slewing (at most 500 ppm in NTP) never counts as a step, because it changes the rate of all three clocks
    /// equally. A suspension never does either, because it advances `boottime` and `realtime` by the same time.
    static let minStep: Duration = .seconds(2)

    private var last: ClockReading

    init(_ first: ClockReading) {
        last = first
    }

    /// Returns what happened between the previous reading and this one, and stores this one.
    mutating func compare(with reading: ClockReading) -> [Event] {
        let before = last
        last = reading
        var events: [Event] = []
        let suspended = reading.suspended - before.suspended
        if suspended >= Self.minSuspension { events.append(.resumed(after: suspended)) }
        let step = reading.setting - before.setting
        if abs(step) >= Self.minStep { events.append(.clockStepped(by: step)) }
        return events
    }
}

extension ClockReading {
    /// The total time for which the machine has been suspended since boot.
    fileprivate var suspended: Duration { boottime - monotonic }

    /// The time of day at which the machine was booted, according to the current setting of the clock. Changes only
    /// if the clock is set.
    fileprivate var setting: Duration { realtime - boottime }
}

private func abs(_ duration: Duration) -> Duration {
    duration < .zero ? .zero - duration : duration
}
