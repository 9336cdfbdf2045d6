internal import Dispatch
internal import Foundation
internal import NetwatchTestSupport
internal import Synchronization

/// The expected and actual completions of one seed, and the violations found. A completion is a handler's call or the
/// end of a wait.
final class CompletionRecord: Sendable {
    private struct Report {
        let progress: Progress
        let completed: Int64
    }

    private struct State {
        /// The number of times that each expected completion has happened.
        var counts: [Int] = []
        /// The handlers of each request, in the order in which they were called.
        var called: [Int: [Int]] = [:]
        /// The last report of each attempt's progress. It retains the progress object, because another one could be
        /// allocated at the same address.
        var reports: [ObjectIdentifier: Report] = [:]
        var reportCount = 0
        var violations: [String] = []
    }

    private let state = Mutex(State())
    private let completed = Recorder<Int>()

    // MARK: Handlers

    /// Registers an expected completion and returns its number.
    func expect() -> Int {
        state.withLock { state in
            state.counts.append(0)
            return state.counts.count - 1
        }
    }

    /// - Parameter request: The request of the handler; `nil` for a wait, which has no order among handlers.
    func note(_ id: Int, of request: Int?) {
        state.withLock { state in
            state.counts[id] += 1
            if let request { state.called[request, default: []].append(id) }
        }
        completed.record(id)
    }

    func swapHandlers() {
        state.withLock { state in
            guard let request = state.called.first(where: { $0.value.count > 1 })?.key else { return }
            state.called[request]!.swapAt(0, 1)
        }
    }

    /// Waits until everything expected has completed. What has not completed by then never would on its own: next,
    /// the session is dropped, which ends everything.
    func settle(timeout: Int) async {
        let expected = state.withLock { $0.counts.count }
        try? await completed.wait(timeout: .milliseconds(timeout)) { Set($0).count >= expected }
        state.withLock { state in
            let missing = state.counts.indices.filter { state.counts[$0] == 0 }
            state.violations += missing.map { "number \($0) was completed 0 times" }
        }
    }

    // MARK: Progress

    /// Checks that progress within an attempt never goes back and never exceeds the total.
    func note(_ progress: Progress, of what: String) {
        // Read the count first, because the total is set before it.
        let (completed, total) = (progress.completedUnitCount, progress.totalUnitCount)
        state.withLock { state in
            state.reportCount += 1
            let last = state.reports[ObjectIdentifier(progress)]?.completed ?? 0
            if completed < last {
                state.violations.append("\(what) goes back from \(last) to \(completed)")
            }
            if total >= 0, completed > total {
                state.violations.append("\(what) is \(completed) of \(total)")
            }
            state.reports[ObjectIdentifier(progress)] = Report(progress: progress, completed: completed)
        }
    }

    /// The number of expected completions so far.
    var count: Int { state.withLock { $0.counts.count } }

    var reportCount: Int { state.withLock { $0.reportCount } }

    // MARK: Violations

    var violations: [String] {
        state.withLock { state in
            let miscounted = state.counts.enumerated().filter { $0.element > 1 }
                .map { "number \($0.offset) was completed \($0.element) times" }
            // The numbers rise in the order in which handlers were added.
            let disordered = state.called.filter { $0.value != $0.value.sorted() }
                .map { "the handlers of request \($0.key) were called as \($0.value)" }
            return state.violations + miscounted + disordered
        }
    }
}
