internal import FoundationEssentials
package import NetwatchEventLoop

extension HostTracker {
    /// A point in time on three clocks.
    package struct Moment: Hashable, Sendable {
        /// Milliseconds since 1970 on the wall clock.
        package let wall: Int64
        /// The time on a clock that cannot be set and that stops while the machine is suspended.
        package let running: Duration
        /// The time on a clock that cannot be set and that continues while the machine is suspended.
        package let boot: BootInstant

        package init(wall: Int64, running: Duration, boot: BootInstant) {
            self.wall = wall
            self.running = running
            self.boot = boot
        }
    }

    /// When something began, such as an outage. The duration since then is measured by the boot clock, so a step of the
    /// wall clock does not change it.
    package struct Start: Hashable, Sendable {
        /// Milliseconds since 1970 on the wall clock as it was set at first. Identifies an outage of a host in the
        /// messages of hooks.
        package let id: Int64
        /// The same time on the wall clock as it was set when it was last recorded.
        package let recorded: Int64
        /// The same time on the boot clock; `nil` if it was before the last boot.
        package let boot: BootInstant?

        /// The difference, in milliseconds, below which ``wall(at:)`` returns the recorded time: 2 s. Without it, the time
        /// would change with each correction of the clock's rate. The value is larger than a leap second.
        private static let leastStep: Int64 = 2000

        package init(id: Int64, recorded: Int64, boot: BootInstant?) {
            self.id = id
            self.recorded = recorded
            self.boot = boot
        }

        package init(_ moment: Moment) {
            self.init(id: moment.wall, recorded: moment.wall, boot: moment.boot)
        }

        /// Returns the time on the wall clock as it is set now, in milliseconds since 1970. It is never after `now`.
        package func wall(at now: Moment) -> Int64 {
            guard let boot else { return min(recorded, now.wall) }
            let exact = now.wall - (now.boot - boot).milliseconds
            return min(abs(exact - recorded) < Self.leastStep ? recorded : exact, now.wall)
        }
    }
}

extension HostTracker.Moment {
    /// The current time.
    package static var now: HostTracker.Moment {
        HostTracker.Moment(
            wall: Int64(Date().timeIntervalSince1970 * 1000),
            running: SuspendingClock.now.sinceStart,
            boot: .now
        )
    }
}

extension SuspendingClock.Instant {
    /// A fixed reference, because an instant cannot be read as a number.
    private static let start = SuspendingClock.now

    fileprivate var sinceStart: Duration { self - Self.start }
}

extension Duration {
    /// The whole milliseconds of the duration.
    package var milliseconds: Int64 {
        components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
    }
}
