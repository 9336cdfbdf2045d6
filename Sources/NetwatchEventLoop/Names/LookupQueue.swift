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
