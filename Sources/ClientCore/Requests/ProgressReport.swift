internal import Dispatch
internal import Foundation
internal import Synchronization

/// The progress of one direction, and the closure that reports it.
///
/// At most one call of the closure is pending on its queue, however fast bytes arrive.
final class ProgressReport: Sendable {
    typealias Closure = @Sendable (Progress) -> Void

    private struct State {
        var counts = Counts()
        /// Displays the counts. Created on first access.
        var displayed: Progress?
        var hasEnded = false
        /// Whether at most one more call of the closure is allowed.
        var isSettled = false
        var closure: Closure?
        var queue = DispatchQueue.main
        var isPosted = false

        mutating func show() -> Progress {
            if let displayed { return displayed }
            let progress = Progress(totalUnitCount: -1)
            counts.show(progress)
            displayed = progress
            return progress
        }
    }

    private struct Counts: Equatable {
        var done: Int64 = 0
        /// -1 while unknown.
        var total: Int64 = -1

        func show(_ progress: Progress) {
            if progress.totalUnitCount != total { progress.totalUnitCount = total }
            progress.completedUnitCount = done
        }
    }

    private let state = Mutex(State())

    var progress: Progress { state.withLock { $0.show() } }

    /// Sets the closure, replacing an earlier one. The closure is called if there already is progress.
    func setClosure(on queue: DispatchQueue, _ closure: @escaping Closure) {
        // Release the old closure outside the lock, because a deinit of what it captures may run any code.
        let (hasProgress, old) = state.withLock { state in
            let old = state.closure
            state.queue = queue
            state.closure = closure
            return (state.hasEnded || state.counts.done > 0, old)
        }
        withExtendedLifetime(old) {}
        if hasProgress { post() }
    }

    /// Starts over for another attempt, with a new `Progress` object: one that has counted bytes cannot return
    /// to an unknown total.
    func restart() {
        state.withLock { state in
            (state.counts, state.displayed, state.hasEnded) = (Counts(), nil, false)
        }
    }

    /// Updates the counts. The completed count never decreases: when a redirect or a challenge sends the body
    /// again, the bytes already sent still count.
    ///
    /// - Parameter total: `nil` while unknown, which the object shows as -1.
    func update(_ done: Int64, of total: Int64?) {
        let hasChanged = state.withLock { state in
            let old = state.counts
            // Foundation traps when a total returns to 0, whatever the completed count is.
            state.counts = Counts(
                done: max(done, old.done),
                total: total == 0 ? max(0, old.total) : total ?? -1
            )
            guard state.counts != old else { return false }
            state.displayed.map(state.counts.show)
            return true
        }
        if hasChanged { post() }
    }

    func end() {
        state.withLock { $0.hasEnded = true }
    }

    /// Releases the closure, after a pending call if there is one.
    func releaseClosures() {
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
