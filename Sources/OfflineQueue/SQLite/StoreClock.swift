internal import CNetwatchLinux
internal import Foundation
internal import Glibc

/// The clocks of a store. Rows contain times of the wall clock. A comparison with the boot clock, which cannot be set,
/// shows whether these times can be trusted.
package struct StoreClock: Sendable {
    /// The times of both clocks at one moment.
    package struct Reading: Hashable, Sendable {
        /// The wall clock (`CLOCK_REALTIME`), which steps when it is set.
        package var wall: Timestamp
        /// The boot clock (`CLOCK_BOOTTIME`): the milliseconds since boot, including suspends. It never steps.
        package var sinceBoot: Int64

        package init(wall: Timestamp, sinceBoot: Int64) {
            self.wall = wall
            self.sinceBoot = sinceBoot
        }

        /// The wall clock minus the boot clock, in milliseconds. It changes only when the wall clock is set or slewed.
        var offset: Int64 { wall.milliseconds - sinceBoot }
    }

    /// The id of this boot. Readings of the boot clock can be compared only within one boot.
    package let bootID: String
    /// Reads both clocks.
    package let read: @Sendable () -> Reading
    /// Returns whether the kernel reports the wall clock as synchronized (adjtimex(2)). This takes longer than reading
    /// the clocks.
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

    /// The kernel's boot id (random(4)). If it cannot be read, each process uses a random id and counts as a separate
    /// boot. Readings of the boot clock from different boots are then never compared.
    private static let kernelBootID: String = {
        let file = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
        return file?.trimmingCharacters(in: .whitespacesAndNewlines) ?? UUID().uuidString
    }()
}
