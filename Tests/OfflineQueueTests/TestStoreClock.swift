internal import Foundation
internal import OfflineQueue
internal import Synchronization

/// The clocks of a store's machine, set by the test: wall clock, boot clock and what the kernel says of them.
final class TestStoreClock: Sendable {
    private struct State {
        var bootID = "boot 1"
        var boots = 1
        var reading = StoreClock.Reading(wall: start, sinceBoot: 3_600_000)
        var isSynchronized = true
    }

    private let state = Mutex(State())

    /// For a store that is opened now: a reboot gives the next one another.
    var clock: StoreClock {
        StoreClock(
            bootID: state.withLock(\.bootID),
            isSynchronized: { self.isSynchronized },
            read: { self.now }
        )
    }

    var now: StoreClock.Reading { state.withLock(\.reading) }
    var isSynchronized: Bool { state.withLock(\.isSynchronized) }

    /// Time passes: both clocks run.
    func advance(_ duration: Duration) {
        state.withLock { state in
            let milliseconds = duration.wholeMilliseconds
            state.reading.wall = Timestamp(milliseconds: state.reading.wall.milliseconds + milliseconds)
            state.reading.sinceBoot += milliseconds
        }
    }

    /// Somebody sets the wall clock.
    func setWall(_ wall: Timestamp) {
        state.withLock { $0.reading.wall = wall }
    }

    func stepWall(_ duration: Duration) {
        setWall(Timestamp(milliseconds: now.wall.milliseconds + duration.wholeMilliseconds))
    }

    func setSynchronized(_ isSynchronized: Bool) {
        state.withLock { $0.isSynchronized = isSynchronized }
    }

    /// The machine starts anew. The store has to be reopened to see it.
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
