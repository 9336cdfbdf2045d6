internal import Dispatch
internal import Foundation
internal import NetwatchEventLoop

/// The progress of an upload or of a download, and the program's closure that receives it.
///
/// At most one call of the closure is pending on its queue, however fast bytes arrive.
final class ProgressReport: Sendable {
    typealias Closure = @Sendable (Progress) -> Void

    private struct State {
        var counts = Counts()
        /// The program's view of the counts. Created on first access.
        var displayed: Progress?
        var hasEnded = false
        /// Whether the closure must be released. If a call of the closure is pending, it is released after that call.
        var isSettled = false
        var closure: Closure?
        /// The queue of the closure.
        var queue: DispatchQueue?
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

    private let state = Lock(State())

    var progress: Progress { state.withLock { $0.show() } }

    /// Sets the closure, replacing an earlier one. If there already is progress, the closure is called with it.
    func setClosure(on queue: DispatchQueue, _ closure: @escaping Closure) {
        // Release the old closure outside the lock: that may run a deinit of the program.
        let (hasProgress, old) = state.withLock { state in
            let old = state.closure
            state.queue = queue
            state.closure = closure
            return (state.hasEnded || state.counts.done > 0, old)
        }
        withExtendedLifetime(old) {}
        if hasProgress { post() }
    }

    /// Starts over for another attempt, with a new `Progress` object. The total of a `Progress` that has counted bytes
    /// cannot become unknown again.
    func restart() {
        state.withLock { state in
            (state.counts, state.displayed, state.hasEnded) = (Counts(), nil, false)
        }
    }

    /// Updates the counts. The completed count never decreases: when the body is sent again after a redirect or a
    /// challenge, the bytes that were sent before still count.
    ///
    /// - Parameter total: The total number of bytes; `nil` while it is unknown, which `Progress` shows as -1.
    func update(_ done: Int64, of total: Int64?) {
        let hasChanged = state.withLock { state in
            let old = state.counts
            // Foundation traps if a total becomes 0 again, whatever the completed count is.
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

    /// Releases the closure. If a call is pending, the closure is released with that call.
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
