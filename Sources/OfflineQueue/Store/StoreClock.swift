internal import CNetwatchLinux
internal import Foundation
internal import Glibc

/// The clocks of a store: what rows remember is the wall clock's, and how far that is to be believed the
/// boot's clock tells.
package struct StoreClock: Sendable {
    package struct Reading: Hashable, Sendable {
        /// `CLOCK_REALTIME`: steps when somebody sets it.
        package var wall: Timestamp
        /// `CLOCK_BOOTTIME` in milliseconds: never steps, begins with the boot, runs on in suspend.
        package var sinceBoot: Int64

        package init(wall: Timestamp, sinceBoot: Int64) {
            self.wall = wall
            self.sinceBoot = sinceBoot
        }

        /// Changes when the wall clock is set.
        var offset: Int64 { wall.milliseconds - sinceBoot }
    }

    /// Tells this boot from all others.
    package let bootID: String
    package let read: @Sendable () -> Reading
    /// Whether the kernel says that the wall clock is right (adjtimex(2)), which takes longer than to read it.
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

    /// random(4). Without it every process is a boot of its own, so that no boot's clock is taken for another's.
    private static let kernelBootID: String = {
        let file = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
        return file?.trimmingCharacters(in: .whitespacesAndNewlines) ?? UUID().uuidString
    }()
}
