internal import Dispatch
internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport

/// The expected and the actual completions of one seed, and the violations that were found. A completion is the call of
/// a handler or the end of a wait.
final class CompletionRecord: Sendable {
    private struct Report {
        let progress: Progress
        let completed: Int64
    }

    private struct State {
        /// How often each expected completion has happened. The index is the number of the completion.
        var counts: [Int] = []
        /// The handlers of each request, in the order in which they were called.
        var called: [Int: [Int]] = [:]
        /// The last report of each attempt's progress. The report retains the progress object: otherwise another object
        /// could be allocated at the same address.
        var reports: [ObjectIdentifier: Report] = [:]
        var reportCount = 0
        var violations: [String] = []
    }

    private let state = Lock(State())
    private let completed = Recorder<Int>()
    private let journal: (@Sendable (String) -> Void)?

    /// - Parameter journal: Called with the line `handler N` for each completion. Default: `nil`.
    init(journal: (@Sendable (String) -> Void)? = nil) {
        self.journal = journal
    }

    // MARK: Handlers

    /// Adds an expected completion, and returns its number.
    func expect() -> Int {
        state.withLock { state in
            state.counts.append(0)
            return state.counts.count - 1
        }
    }

    /// Records that an expected completion has happened.
    ///
    /// - Parameters:
    ///   - id: The number of the completion.
    ///   - request: The number of the handler's request; `nil` for a wait, because the order of waits does not matter.
    func note(_ id: Int, of request: Int?) {
        state.withLock { state in
            state.counts[id] += 1
            if let request { state.called[request, default: []].append(id) }
        }
        journal?("handler \(id)")
        completed.record(id)
    }

    func swapHandlers() {
        state.withLock { state in
            guard let request = state.called.first(where: { $0.value.count > 1 })?.key else { return }
            state.called[request]!.swapAt(0, 1)
        }
    }

    /// Waits until all expected completions have happened, at most for the timeout. A completion that is missing after
    /// that is a violation. It must be recorded now, because afterwards the session is released, which ends every
    /// request.
    func settle(timeout: Int) async {
        await wait(milliseconds: timeout)
        state.withLock { state in
            let missing = state.counts.indices.filter { state.counts[$0] == 0 }
            state.violations += missing.map { "completion \($0) never happened" }
        }
    }

    /// Waits until all completions that are expected now have happened, at most for a time.
    func wait(milliseconds: Int) async {
        let expected = state.withLock { $0.counts.count }
        try? await completed.wait(timeout: .milliseconds(milliseconds)) { Set($0).count >= expected }
    }

    // MARK: Progress

    /// Checks that the progress of an attempt never decreases and never exceeds the total.
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

    /// Records another violation.
    func violated(_ violation: String) {
        state.withLock { $0.violations.append(violation) }
    }

    var violations: [String] {
        state.withLock { state in
            let miscounted = state.counts.enumerated().filter { $0.element > 1 }
                .map { "completion \($0.offset) happened \($0.element) times" }
            // Completions are numbered in the order in which their handlers were added.
            let disordered = state.called.filter { $0.value != $0.value.sorted() }
                .map { "the handlers of request \($0.key) were called in the order \($0.value)" }
            return state.violations + miscounted + disordered
        }
    }
}
