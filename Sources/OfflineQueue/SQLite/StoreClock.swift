internal import CNetwatchLinux
internal import Foundation
internal import Glibc

/// The clocks of a store. Rows hold times of the wall clock; the boot clock shows how far these can be trusted.
package struct StoreClock: Sendable {
    package struct Reading: Hashable, Sendable {
        /// `CLOCK_REALTIME`: jumps when the clock is set.
        package var wall: Timestamp
        /// `CLOCK_BOOTTIME` in milliseconds: never jumps, starts at boot, and continues during suspend.
        package var sinceBoot: Int64

        package init(wall: Timestamp, sinceBoot: Int64) {
            self.wall = wall
            self.sinceBoot = sinceBoot
        }

        /// The wall clock minus the boot clock, in milliseconds. Changes when the wall clock is set.
        var offset: Int64 { wall.milliseconds - sinceBoot }
    }

    /// Identifies this boot.
    package let bootID: String
    package let read: @Sendable () -> Reading
    /// Whether the kernel reports the wall clock as synchronized (adjtimex(2)). Takes longer than reading the clock.
    package let isSynchronized: @Sendable () -> Bool

    package init(
        bootID: String,
        isSynchronized: @escaping @Sendable () -> Bool,
        read: @escaping @Sendable () -> Reading
    ) {
        self.bootID = bootID
        self.isSynchronized = isSynchronized
        self.read = read
    }

    /// The kernel's clocks.
    package static let system = StoreClock(
        bootID: kernelBootID,
        isSynchronized: { netwatch_clock_is_synchronized() == 1 },
        read: {
            var boot = timespec()
            clock_gettime(CLOCK_BOOTTIME, &boot)
            return Reading(
                wall: .now,
                sinceBoot: Int64(boot.tv_sec) * 1000 + Int64(boot.tv_nsec) / 1_000_000
            )
        }
    )

    /// The kernel's boot id, see random(4). Without it every process counts as a separate boot, so that the boot clocks
    /// of two boots are never mixed up.
    private static let kernelBootID: String = {
        let file = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
        return file?.trimmingCharacters(in: .whitespacesAndNewlines) ?? UUID().uuidString
    }()
}
