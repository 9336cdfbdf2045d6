/// Questions that wait for a thread, in the order of their arrival within each rank. A pure value.
struct LookupQueue<Question: Hashable & Sendable>: Sendable {
    /// How soon a question gets a thread, the most urgent first, and how much of the pool it may use.
    enum Rank: Int, CaseIterable, Sendable {
        /// A caller waits for a name that answered promptly the last time.
        case known
        /// A caller waits for a name that was never looked up.
        case first
        /// A caller waits for a name that was silent lately.
        case silent
        /// No caller waits to connect, but the name was never looked up.
        case firstRefresh
        case refresh
        case silentRefresh

        /// Which part of the pool may run lookups of this rank, together with all others but known ones, in eighths.
        var eighths: Int {
            switch self {
            case .known: 8
            case .first: 7
            case .firstRefresh: 6
            // More than silent names, which would keep refreshes waiting for as long as there are such.
            case .refresh: 5
            case .silent, .silentRefresh: 4
            }
        }
    }

    private struct Place {
        let question: Question
        let ticket: UInt64
    }

    /// A question that was moved or removed leaves its old place behind, whose ticket is no longer valid.
    private var lines = Rank.allCases.map { _ in WaitingLine<Place>() }
    private var tickets: [Question: (rank: Rank, ticket: UInt64)] = [:]
    private var counts = Rank.allCases.map { _ in 0 }
    private var lastTicket: UInt64 = 0
    private var invalidPlaces = 0

    var count: Int { tickets.count }

    /// The places in the lines, invalid ones included.
    var places: Int { count + invalidPlaces }

    func count(of rank: Rank) -> Int { counts[rank.rawValue] }

    func rank(of question: Question) -> Rank? { tickets[question]?.rank }

    /// Puts a question at the end of a rank, unless it is in that rank already.
    mutating func insert(_ question: Question, _ rank: Rank) {
        guard self.rank(of: question) != rank else { return }
        remove(question)
        lastTicket += 1
        tickets[question] = (rank, lastTicket)
        counts[rank.rawValue] += 1
        lines[rank.rawValue].append(Place(question: question, ticket: lastTicket))
    }

    mutating func remove(_ question: Question) {
        guard let place = tickets.removeValue(forKey: question) else { return }
        counts[place.rank.rawValue] -= 1
        invalidPlaces += 1
        // Callers that ask and give up again must not fill the memory.
        if invalidPlaces > 64 + count { removeInvalidPlaces() }
    }

    mutating func popFirst(_ rank: Rank) -> Question? {
        guard count(of: rank) > 0 else { return nil }
        while let place = lines[rank.rawValue].popFirst() {
            guard tickets[place.question]?.ticket == place.ticket else {
                invalidPlaces -= 1
                continue
            }
            tickets[place.question] = nil
            counts[rank.rawValue] -= 1
            return place.question
        }
        return nil
    }

    /// Removes everything, and returns it by rank and arrival.
    mutating func removeAll() -> [Question] {
        defer { self = LookupQueue() }
        return lines.indices.flatMap { index in
            lines[index].removeAll().filter { tickets[$0.question]?.ticket == $0.ticket }.map(\.question)
        }
    }

    private mutating func removeInvalidPlaces() {
        for index in lines.indices {
            lines[index].keep { tickets[$0.question]?.ticket == $0.ticket }
        }
        invalidPlaces = 0
    }
}
