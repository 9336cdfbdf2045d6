internal import CNetwatchLinux
internal import Foundation
internal import GRDB
internal import GRDBSQLite
internal import Glibc
internal import NetwatchEventLoop

/// The clocks of a store. ``StoredTimes`` says how the store uses them.
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
    /// Returns whether the kernel reports the wall clock as synchronized (adjtimex(2)); `nil` if a filter of system
    /// calls refuses the call. This takes longer than reading the clocks.
    package let isSynchronized: @Sendable () -> Bool?

    /// Whether dates of this clock can be compared with those of other boots. An unknown state is not trusted.
    var isTrusted: Bool { isSynchronized() == true }

    package init(
        bootID: String,
        isSynchronized: @escaping @Sendable () -> Bool?,
        read: @escaping @Sendable () -> Reading
    ) {
        self.bootID = bootID
        self.isSynchronized = isSynchronized
        self.read = read
    }

    /// The kernel's clocks.
    package static let system = StoreClock(
        bootID: kernelBootID,
        isSynchronized: systemIsSynchronized,
        read: {
            let start = firstReading
            return Reading(wall: .now, sinceBoot: bootClock() - start)
        }
    )

    private static func bootClock() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    private static func systemIsSynchronized() -> Bool? {
        let (state, timeError) = (netwatch_clock_state(), CInt(5))
        return state < 0 ? nil : state != timeError
    }

    /// The id of this boot. If it is not known, each process uses a random id and counts as a separate boot, which
    /// begins with the first reading. Readings of the boot clock from different boots are never compared.
    private static let kernelBootID = BootID.current ?? UUID().uuidString
    private static let firstReading = BootID.current == nil ? bootClock() : 0
}

/// Makes the statements of a connection end with `SQLITE_INTERRUPT` after a time. Used only by the thread that uses the
/// connection.
final class StatementTimeLimit {
    /// The number of steps of a statement after which SQLite calls the handler.
    private static let steps: CInt = 100

    private let database: Database
    private let deadline: ContinuousClock.Instant

    /// Begins the time. ``end()`` must be called before the last reference is released.
    init(of database: Database, _ limit: Duration) {
        self.database = database
        deadline = .now + limit
        let handler: @convention(c) (UnsafeMutableRawPointer?) -> CInt = { context in
            context.map { Unmanaged<StatementTimeLimit>.fromOpaque($0).takeUnretainedValue().isOver ? 1 : 0 }
                ?? 0
        }
        sqlite3_progress_handler(
            database.sqliteConnection,
            Self.steps,
            handler,
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    private var isOver: Bool { ContinuousClock.now >= deadline }

    /// Removes the limit.
    func end() { sqlite3_progress_handler(database.sqliteConnection, 0, nil, nil) }
}
