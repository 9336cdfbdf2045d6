internal import Dispatch
internal import Foundation
internal import Synchronization

/// One direction's progress, and the closure that is told of it.
///
/// However fast bytes come, no more than one call of the closure waits on its queue.
final class ProgressReport: Sendable {
    typealias Closure = @Sendable (Progress) -> Void

    private struct State {
        var progress = ProgressReport.unknown()
        var isOver = false
        /// Whether the closure is called once more at most.
        var isSettled = false
        var closure: Closure?
        var queue = DispatchQueue.main
        var isPosted = false
    }

    private let state = Mutex(State())

    var progress: Progress { state.withLock { $0.progress } }

    /// The last closure counts. One that comes when there is progress already is told of it.
    func tell(on queue: DispatchQueue, _ closure: @escaping Closure) {
        // The old one goes outside the lock: it may be the last reference to anything.
        let (hasNews, old) = state.withLock { state in
            let old = state.closure
            state.queue = queue
            state.closure = closure
            return (state.isOver || state.progress.completedUnitCount > 0, old)
        }
        withExtendedLifetime(old) {}
        if hasNews { post() }
    }

    /// Begins anew for another attempt, with an object of its own: one that has counted bytes may not go back
    /// to a total of none.
    func restart() {
        state.withLock { state in
            state.progress = Self.unknown()
            state.isOver = false
        }
    }

    /// What was done stays done: a body that a redirect or a challenge asks for again does not take it back.
    ///
    /// - Parameter total: `nil` while it is not known, which the object shows as -1.
    func update(_ done: Int64, of total: Int64?) {
        let hasChanged = state.withLock { state in
            let progress = state.progress
            let (done, total) = (max(done, progress.completedUnitCount), total ?? -1)
            guard progress.completedUnitCount != done || progress.totalUnitCount != total else {
                return false
            }
            // Foundation traps when a total goes back to 0, whatever was done of it.
            if total != 0 || progress.totalUnitCount <= 0 { progress.totalUnitCount = total }
            progress.completedUnitCount = done
            return true
        }
        if hasChanged { post() }
    }

    func end() {
        state.withLock { $0.isOver = true }
    }

    /// Drops the closure after a call that waits.
    func letGo() {
        let closure = state.withLock { state -> Closure? in
            state.isSettled = true
            guard !state.isPosted else { return nil }
            defer { state.closure = nil }
            return state.closure
        }
        withExtendedLifetime(closure) {}
    }

    private func post() {
        let queue: DispatchQueue? = state.withLock { state in
            guard state.closure != nil, !state.isPosted else { return nil }
            state.isPosted = true
            return state.queue
        }
        queue?.async { self.call() }
    }

    private func call() {
        let (closure, progress) = state.withLock { state in
            state.isPosted = false
            defer { if state.isSettled { state.closure = nil } }
            return (state.closure, state.progress)
        }
        closure?(progress)
    }

    private static func unknown() -> Progress {
        Progress(totalUnitCount: -1)
    }
}
