internal import Foundation
internal import NetwatchEventLoop
internal import OfflineQueue

/// The clocks of a simulated machine: the wall clock, the boot clock, and whether the kernel reports the wall clock as
/// synchronized.
final class TestStoreClock: Sendable {
    private struct State {
        var bootID = "boot 1"
        var boots = 1
        var reading = StoreClock.Reading(wall: start, sinceBoot: 3_600_000)
        var isSynchronized = true
    }

    private let state = Lock(State())

    /// The clock to pass to a store that is opened now. After ``reboot()``, the next store needs a new one.
    var clock: StoreClock {
        StoreClock(
            bootID: state.withLock(\.bootID),
            isSynchronized: { self.isSynchronized },
            read: { self.now }
        )
    }

    var now: StoreClock.Reading { state.withLock(\.reading) }
    var isSynchronized: Bool { state.withLock(\.isSynchronized) }

    /// Advances both clocks.
    func advance(_ duration: Duration) {
        state.withLock { state in
            let milliseconds = duration.wholeMilliseconds
            state.reading.wall = Timestamp(milliseconds: state.reading.wall.milliseconds + milliseconds)
            state.reading.sinceBoot += milliseconds
        }
    }

    /// Sets the wall clock without advancing the boot clock.
    func setWall(_ wall: Timestamp) {
        state.withLock { $0.reading.wall = wall }
    }

    func stepWall(_ duration: Duration) {
        setWall(Timestamp(milliseconds: now.wall.milliseconds + duration.wholeMilliseconds))
    }

    func setSynchronized(_ isSynchronized: Bool) {
        state.withLock { $0.isSynchronized = isSynchronized }
    }

    /// Simulates a reboot. The store must then be opened again with a new ``clock``.
    func reboot() {
        state.withLock { state in
            state.boots += 1
            state.bootID = "boot \(state.boots)"
            state.reading.sinceBoot = 2000
        }
    }
}

extension Duration {
    fileprivate var wholeMilliseconds: Int64 {
        components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
    }
}
