internal import Dispatch
internal import Foundation
internal import Synchronization

/// One direction's progress, and the closure that is told of it.
///
/// However fast bytes come, no more than one call of the closure waits on its queue.
final class ProgressReport: Sendable {
    typealias Closure = @Sendable (Progress) -> Void

    private struct State {
        var counts = Counts()
        /// What shows the counts; made for those who look.
        var shown: Progress?
        var isOver = false
        /// Whether the closure is called once more at most.
        var isSettled = false
        var closure: Closure?
        var queue = DispatchQueue.main
        var isPosted = false

        mutating func show() -> Progress {
            if let shown { return shown }
            let progress = Progress(totalUnitCount: -1)
            counts.show(progress)
            shown = progress
            return progress
        }
    }

    private struct Counts: Equatable {
        var done: Int64 = 0
        /// -1 while it is not known.
        var total: Int64 = -1

        func show(_ progress: Progress) {
            if progress.totalUnitCount != total { progress.totalUnitCount = total }
            progress.completedUnitCount = done
        }
    }

    private let state = Mutex(State())

    var progress: Progress { state.withLock { $0.show() } }

    /// The last closure counts. One that comes when there is progress already is told of it.
    func tell(on queue: DispatchQueue, _ closure: @escaping Closure) {
        // The old one goes outside the lock: it may be the last reference to anything.
        let (hasNews, old) = state.withLock { state in
            let old = state.closure
            state.queue = queue
            state.closure = closure
            return (state.isOver || state.counts.done > 0, old)
        }
        withExtendedLifetime(old) {}
        if hasNews { post() }
    }

    /// Begins anew for another attempt, with an object of its own: one that has counted bytes may not go back
    /// to a total of none.
    func restart() {
        state.withLock { state in
            (state.counts, state.shown, state.isOver) = (Counts(), nil, false)
        }
    }

    /// What was done stays done: a body that a redirect or a challenge asks for again does not take it back.
    ///
    /// - Parameter total: `nil` while it is not known, which the object shows as -1.
    func update(_ done: Int64, of total: Int64?) {
        let hasChanged = state.withLock { state in
            let old = state.counts
            // Foundation traps when a total goes back to 0, whatever was done of it.
            state.counts = Counts(
                done: max(done, old.done),
                total: total == 0 ? max(0, old.total) : total ?? -1
            )
            guard state.counts != old else { return false }
            state.shown.map(state.counts.show)
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
            return (state.closure, state.show())
        }
        closure?(progress)
    }
}
