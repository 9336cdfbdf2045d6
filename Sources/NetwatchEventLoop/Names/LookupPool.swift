/// Which question gets a thread next, and how many threads there should be. A pure value.
///
/// A thread is blocked for as long as a name server is silent. So at most half of the pool runs lookups that
/// are likely to block it, five eighths refreshes, six eighths first lookups that no caller waits for, and seven eighths
/// other first lookups; the rest is left to names that answered promptly the last time.
struct LookupPool<Question: Hashable & Sendable>: Sendable {
    typealias Instant = ContinuousClock.Instant
    typealias Queue = LookupQueue<Question>

    private struct Running {
        let since: Instant
        let rank: Queue.Rank

        func isOverdue(_ now: Instant) -> Bool { now - since >= ResolverTimes.silence }
    }

    let size: Int
    /// Threads that were started and have not ended.
    private(set) var threads = 0
    private(set) var queue = Queue()
    private var running: [Question: Running] = [:]

    init(size: Int) {
        self.size = max(1, size)
    }

    /// Whether a thread looks the question up now.
    func isRunning(_ question: Question) -> Bool { running[question] != nil }

    /// When a thread began with the question.
    func start(of question: Question) -> Instant? { running[question]?.since }

    mutating func enqueue(_ question: Question, _ rank: Queue.Rank) {
        queue.insert(question, rank)
    }

    mutating func dequeue(_ question: Question) {
        queue.remove(question)
    }

    /// Removes and returns all questions that wait.
    mutating func dequeueAll() -> [Question] { queue.removeAll() }

    /// Gives a thread its next question. A thread that gets none ends.
    mutating func takeNext(now: Instant) -> Question? {
        let limited = limitedLookups(now: now)
        for rank in Queue.Rank.allCases where rank == .known || limited < limit(of: rank) {
            guard let question = queue.popFirst(rank) else { continue }
            running[question] = Running(since: now, rank: rank)
            return question
        }
        threads -= 1
        return nil
    }

    /// A thread has ended its lookup. Returns how long it took.
    mutating func end(_ question: Question, now: Instant) -> Duration {
        guard let lookup = running.removeValue(forKey: question) else { return .zero }
        return now - lookup.since
    }

    /// Counts the threads that must be started now, and expects the caller to start them.
    mutating func grow(now: Instant) -> Int {
        guard queue.count > 0 else { return 0 }
        // Threads that look nothing up are about to take a question.
        let missing = max(0, min(runnable(now) - (threads - running.count), size - threads))
        threads += missing
        return missing
    }

    /// How many questions threads could begin with.
    private func runnable(_ now: Instant) -> Int {
        var limited = limitedLookups(now: now)
        var count = queue.count(of: .known)
        for rank in Queue.Rank.allCases where rank != .known {
            let more = max(0, min(queue.count(of: rank), limit(of: rank) - limited))
            limited += more
            count += more
        }
        return count
    }

    /// A thread could not be started.
    mutating func threadFailed() { threads -= 1 }

    private func limit(of rank: Queue.Rank) -> Int {
        (size * rank.eighths + 7) / 8
    }

    /// Lookups that count towards the limits. One that takes long does, whatever was expected of it.
    private func limitedLookups(now: Instant) -> Int {
        running.values.count { $0.rank != .known || $0.isOverdue(now) }
    }
}
