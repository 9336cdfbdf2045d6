internal import Glibc

/// The three clocks of the kernel at one moment.
struct ClockReading: Hashable, Sendable {
    /// Stands still while the machine is suspended.
    var monotonic: Duration
    /// Goes on while the machine is suspended.
    var boottime: Duration
    /// The time of day, which somebody may set.
    var realtime: Duration

    /// Reads the clocks. The thread may be interrupted between two of them, so of a few readings the one
    /// that took the shortest counts.
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
        // Fails only for a clock that is none.
        clock_gettime(clock, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}

/// Finds out, from readings of the clocks, that the machine was asleep. A pure value.
struct ClockWatch: Sendable {
    /// What happened since the reading before.
    enum Finding: Hashable, Sendable {
        /// The machine was suspended for so long.
        case resumed(after: Duration)
        /// The time of day jumped by so much, forwards if positive. A virtual machine that was paused does
        /// not notice, until somebody sets its clock.
        case clockStepped(by: Duration)
    }

    /// Far more than the time between two of the clocks' readings, and less than any suspension.
    static let shortestSuspension: Duration = .milliseconds(100)

    /// More than a leap second and than the steps by which time daemons set a running clock right (0.128 s
    /// of ntpd, 0.4 s of systemd-timesyncd, 1 s in chrony's usual settings); less than any pause that a
    /// path does not outlive.
    ///
    /// Slewing, at most 500 ppm by NTP, needs no allowance: it changes the pace of all three clocks alike.
    /// Nor does a suspension, for which the kernel sets both the others forward.
    static let smallestStep: Duration = .seconds(2)

    private var last: ClockReading

    init(_ first: ClockReading) {
        last = first
    }

    /// Compares the clocks with what they showed the last time.
    mutating func compare(with reading: ClockReading) -> [Finding] {
        let before = last
        last = reading
        var findings: [Finding] = []
        let suspended = reading.suspended - before.suspended
        if suspended >= Self.shortestSuspension { findings.append(.resumed(after: suspended)) }
        let step = reading.setting - before.setting
        if abs(step) >= Self.smallestStep { findings.append(.clockStepped(by: step)) }
        return findings
    }
}

extension ClockReading {
    /// How long the machine has been suspended since it was started.
    fileprivate var suspended: Duration { boottime - monotonic }

    /// What the time of day has been set to, as the moment of the machine's start.
    fileprivate var setting: Duration { realtime - boottime }
}

private func abs(_ duration: Duration) -> Duration {
    duration < .zero ? .zero - duration : duration
}
