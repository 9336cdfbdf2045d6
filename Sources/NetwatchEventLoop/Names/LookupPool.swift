/// A pool of lookup threads: it decides which question gets a thread next and how many threads are needed. A value
/// without I/O.
///
/// A thread is blocked for as long as a name server is silent. So only lookups of names whose last lookup was fast may
/// use all threads. A lookup of any other kind starts only if the number of limited lookups is below the share of its
/// kind. A running lookup is limited if it is of a kind in this table, or has become slow.
///
/// | kind | share of the pool |
/// |---|---|
/// | the last lookup of the name was slow | four eighths |
/// | refresh | five eighths |
/// | first lookup, no caller waits to connect | six eighths |
/// | first lookup | seven eighths |
///
/// ``LookupQueue/Rank`` defines the kinds.
struct LookupPool<Question: Hashable & Sendable>: Sendable {
    typealias Instant = BootInstant
    typealias Queue = LookupQueue<Question>

    private struct Running {
        let since: Instant
        let rank: Queue.Rank

        func isOverdue(_ now: Instant) -> Bool { now - since >= ResolverTimes.slowLookup }
    }

    let size: Int
    /// The number of threads that were started and have not ended.
    private(set) var threads = 0
    private(set) var queue = Queue()
    private var running: [Question: Running] = [:]

    init(size: Int) {
        self.size = max(1, size)
    }

    /// Returns whether a thread is looking up the question.
    func isRunning(_ question: Question) -> Bool { running[question] != nil }

    /// Returns the time at which a thread started to look up the question; `nil` if none has.
    func start(of question: Question) -> Instant? { running[question]?.since }

    mutating func enqueue(_ question: Question, _ rank: Queue.Rank) {
        queue.insert(question, rank)
    }

    mutating func dequeue(_ question: Question) {
        queue.remove(question)
    }

    /// Removes and returns all waiting questions.
    mutating func dequeueAll() -> [Question] { queue.removeAll() }

    /// Returns the next question for a thread. If the result is `nil`, the thread must exit.
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

    /// Records the end of a lookup. Returns its duration.
    mutating func end(_ question: Question, now: Instant) -> Duration {
        guard let lookup = running.removeValue(forKey: question) else { return .zero }
        return now - lookup.since
    }

    /// Returns the number of threads that the caller must start now. The pool counts them as started.
    mutating func grow(now: Instant) -> Int {
        guard queue.count > 0 else { return 0 }
        // Threads that are not running a lookup are about to take a question, so they are not missing.
        let missing = max(0, min(runnable(now) - (threads - running.count), size - threads))
        threads += missing
        return missing
    }

    /// Returns the number of waiting questions that may be started now.
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

    /// Records that a thread could not be started.
    mutating func threadFailed() { threads -= 1 }

    private func limit(of rank: Queue.Rank) -> Int {
        (size * rank.eighths + 7) / 8
    }

    /// Returns the number of running lookups that count towards the limits. A slow lookup counts, whatever its rank.
    private func limitedLookups(now: Instant) -> Int {
        running.values.count { $0.rank != .known || $0.isOverdue(now) }
    }
}
