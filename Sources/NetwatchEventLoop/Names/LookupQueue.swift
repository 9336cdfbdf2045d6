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

/// The questions that wait for a thread, in order of arrival within each rank. A value without I/O.
struct LookupQueue<Question: Hashable & Sendable>: Sendable {
    /// The rank of a question, which decides its priority and its share of the pool. The most urgent rank comes first.
    enum Rank: Int, CaseIterable, Sendable {
        /// A caller waits, and the last lookup of the name was fast.
        case known
        /// A caller waits, and the name was never looked up.
        case first
        /// A caller waits, and the last lookup of the name was slow.
        case slow
        /// No caller waits to connect, and the name was never looked up.
        case firstRefresh
        /// No caller waits to connect, and the last lookup of the name was fast.
        case refresh
        /// No caller waits to connect, and the last lookup of the name was slow.
        case slowRefresh

        /// The rank's share of the pool, in eighths. A lookup of this rank starts only while fewer limited lookups than
        /// this share are running; see ``LookupPool``.
        var eighths: Int {
            switch self {
            case .known: 8
            case .first: 7
            case .firstRefresh: 6
            // This is more than for slow names, so that slow names cannot block all refreshes.
            case .refresh: 5
            case .slow, .slowRefresh: 4
            }
        }
    }

    private struct Entry {
        let question: Question
        let ticket: UInt64
    }

    /// The queues, one per rank. When a question is moved or removed, its old entry stays in the queue. The entry is
    /// invalid, because its ticket no longer matches.
    private var queues = Rank.allCases.map { _ in FIFOQueue<Entry>() }
    private var tickets: [Question: (rank: Rank, ticket: UInt64)] = [:]
    private var counts = Rank.allCases.map { _ in 0 }
    private var lastTicket: UInt64 = 0
    private var invalidEntries = 0

    var count: Int { tickets.count }

    /// The number of entries in all queues, including invalid ones. For tests.
    var entryCount: Int { count + invalidEntries }

    func count(of rank: Rank) -> Int { counts[rank.rawValue] }

    func rank(of question: Question) -> Rank? { tickets[question]?.rank }

    /// Appends a question to the queue of a rank. Has no effect if it is already there. A question that has another
    /// rank is moved.
    mutating func insert(_ question: Question, _ rank: Rank) {
        guard self.rank(of: question) != rank else { return }
        remove(question)
        lastTicket += 1
        tickets[question] = (rank, lastTicket)
        counts[rank.rawValue] += 1
        queues[rank.rawValue].append(Entry(question: question, ticket: lastTicket))
    }

    mutating func remove(_ question: Question) {
        guard let entry = tickets.removeValue(forKey: question) else { return }
        counts[entry.rank.rawValue] -= 1
        invalidEntries += 1
        // Without this cleanup, callers that repeatedly start and abandon lookups would fill the memory.
        if invalidEntries > 64 + count { removeInvalidEntries() }
    }

    mutating func popFirst(_ rank: Rank) -> Question? {
        guard count(of: rank) > 0 else { return nil }
        while let entry = queues[rank.rawValue].popFirst() {
            guard tickets[entry.question]?.ticket == entry.ticket else {
                invalidEntries -= 1
                continue
            }
            tickets[entry.question] = nil
            counts[rank.rawValue] -= 1
            return entry.question
        }
        return nil
    }

    /// Removes all questions and returns them by rank and arrival.
    mutating func removeAll() -> [Question] {
        defer { self = LookupQueue() }
        return queues.indices.flatMap { index in
            queues[index].removeAll().filter { tickets[$0.question]?.ticket == $0.ticket }.map(\.question)
        }
    }

    private mutating func removeInvalidEntries() {
        for index in queues.indices {
            queues[index].keep { tickets[$0.question]?.ticket == $0.ticket }
        }
        invalidEntries = 0
    }
}
