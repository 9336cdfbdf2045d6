internal import Glibc

/// The readings of the kernel's three clocks at one moment.
struct ClockReading: Hashable, Sendable {
    /// Stops while the machine is suspended.
    var monotonic: Duration
    /// Continues while the machine is suspended.
    var boottime: Duration
    /// The time of day, which can be set.
    var realtime: Duration

    /// Reads the clocks. The thread may be preempted between two reads, so this returns the fastest of four attempts.
    static func now() -> ClockReading {
        let attempts = (0..<4).map { _ in
            let reading = ClockReading(
                monotonic: read(CLOCK_MONOTONIC),
                boottime: read(CLOCK_BOOTTIME),
                realtime: read(CLOCK_REALTIME)
            )
            return (reading, read(CLOCK_MONOTONIC) - reading.monotonic)
        }
        return attempts.min { $0.1 < $1.1 }!.0
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

    /// The shortest difference that counts as a suspension. Far longer than the time between two clock reads, and
    /// shorter than any suspension.
    static let minSuspension: Duration = .milliseconds(100)

    /// The smallest change of the time of day that counts as a step.
    ///
    /// Larger than a leap second and the steps that time daemons make to a running clock: 0.128 s in ntpd, 0.4 s in
    /// systemd-timesyncd, 1 s in the usual settings of chrony. Smaller than any pause that breaks a path.
    ///
    /// Slewing (at most 500 ppm in NTP) needs no allowance, because it changes the rate of all three clocks
    /// equally. Neither does a suspension: the kernel advances both other clocks by it.
    static let minStep: Duration = .seconds(2)

    private var last: ClockReading

    init(_ first: ClockReading) {
        last = first
    }

    /// Compares the clocks with the previous reading.
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

    /// The offset of the time of day, expressed as the time of boot.
    fileprivate var setting: Duration { realtime - boottime }
}

private func abs(_ duration: Duration) -> Duration {
    duration < .zero ? .zero - duration : duration
}
