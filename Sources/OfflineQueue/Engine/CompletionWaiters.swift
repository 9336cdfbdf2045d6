/// The calls that wait until a request has finished, by the ids of the requests.
///
/// A thousand clients may wait at the same time, so each call needs only its suspended task and an entry here. All
/// deadlines share one timer, because a cancelled `Task.sleep` keeps its memory until its deadline.
struct CompletionWaiters {
    private struct Waiter {
        let deadline: ContinuousClock.Instant?
        /// Whether the call was woken before its task was suspended.
        var isWoken = false
        /// The continuation of the suspended task; `nil` before it is suspended and after it was resumed.
        var continuation: CheckedContinuation<Void, Never>?
    }

    private var waiters: [String: [Int: Waiter]] = [:]
    private var nextNumber = 0
    private var timer: (deadline: ContinuousClock.Instant, task: Task<Void, Never>)?
    /// The ids of requests with waiters that may have finished.
    private var candidates: Set<String> = []
    private var isChecking = false

    /// The ids of the requests that calls wait for.
    var ids: some Sequence<String> { waiters.keys }

    /// Adds a waiter, and returns its number.
    mutating func add(_ id: String, deadline: ContinuousClock.Instant?) -> Int {
        nextNumber += 1
        waiters[id, default: [:]][nextNumber] = Waiter(deadline: deadline)
        return nextNumber
    }

    mutating func remove(_ waiter: Int, of id: String) {
        waiters[id]?[waiter] = nil
        if waiters[id]?.isEmpty == true { waiters[id] = nil }
    }

    /// Whether the waiter has not been woken yet.
    func mustWait(_ waiter: Int, of id: String) -> Bool { waiters[id]?[waiter]?.isWoken == false }

    /// Sets the continuation that ``wake(_:of:)`` resumes.
    mutating func suspend(_ waiter: Int, of id: String, _ continuation: CheckedContinuation<Void, Never>) {
        waiters[id]?[waiter]?.continuation = continuation
    }

    mutating func wake(_ waiter: Int, of id: String) {
        guard let continuation = waiters[id]?[waiter]?.continuation else {
            waiters[id]?[waiter]?.isWoken = true
            return
        }
        waiters[id]?[waiter]?.continuation = nil
        continuation.resume()
    }

    /// Wakes all waiters of a request.
    mutating func wakeAll(of id: String) {
        for waiter in (waiters[id] ?? [:]).keys { wake(waiter, of: id) }
    }

    /// Wakes all waiters of all requests.
    mutating func wakeAll() {
        for id in waiters.keys { wakeAll(of: id) }
    }

    // MARK: Finished requests

    /// Records that requests may have finished. Ignores those without waiters.
    ///
    /// - Returns: Whether the caller must start a check, which takes the requests with ``takeCandidates()``.
    mutating func mark(_ ids: some Sequence<String>) -> Bool {
        for id in ids where waiters[id] != nil { candidates.insert(id) }
        guard !candidates.isEmpty, !isChecking else { return false }
        isChecking = true
        return true
    }

    /// Removes and returns the requests to check. `nil` if there are none, which ends the check.
    mutating func takeCandidates() -> [String]? {
        guard !candidates.isEmpty else {
            isChecking = false
            return nil
        }
        defer { candidates = [] }
        return Array(candidates)
    }

    // MARK: Deadlines

    /// Sets the timer to a deadline, unless it is set to an earlier one or there is no deadline.
    ///
    /// - Parameter start: Starts the task of the timer, which calls ``timerFired(at:)`` at the deadline.
    mutating func setTimer(
        _ deadline: ContinuousClock.Instant?,
        _ start: (ContinuousClock.Instant) -> Task<Void, Never>
    ) {
        guard let deadline, timer.map({ deadline < $0.deadline }) ?? true else { return }
        timer?.task.cancel()
        timer = (deadline, start(deadline))
    }

    /// Wakes the waiters whose deadlines have passed.
    ///
    /// - Returns: The deadline to set the timer to; `nil` if no waiter has one.
    mutating func timerFired(at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        timer = nil
        var next: ContinuousClock.Instant?
        for (id, entries) in waiters {
            for (waiter, entry) in entries {
                guard let deadline = entry.deadline else { continue }
                if deadline <= now { wake(waiter, of: id) } else { next = min(next ?? deadline, deadline) }
            }
        }
        return next
    }
}
