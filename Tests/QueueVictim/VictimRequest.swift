internal import NetwatchTestSupport

/// One request of a ``Victim``: everything of it follows from its producer and its number, so that whoever
/// receives it can tell whether it is whole.
package struct VictimRequest: Hashable, Sendable {
    package let producer: Int
    /// Rises with every request of its producer, over all runs.
    package let number: Int

    package init(producer: Int, number: Int) {
        self.producer = producer
        self.number = number
    }

    /// `nil` when it is none of ours.
    package init?(id: some StringProtocol) {
        let parts = id.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].first == "p",
            let producer = Int(parts[0].dropFirst()), let number = Int(parts[1])
        else { return nil }
        self.init(producer: producer, number: number)
    }

    package var id: String { "p\(producer)-\(number)" }

    /// Every other request keeps order, in a lane of its producer's own.
    package var isFIFO: Bool { !number.isMultiple(of: 2) }

    package var lane: String { isFIFO ? "p\(producer)" : "parallel-\(producer % 4)" }

    /// One in eight may not be sent twice, whatever happens, and is held instead.
    package var isAtMostOnce: Bool { number % 8 == 4 }

    /// Half of either kind are not idempotent and carry a key.
    package var method: String { number % 4 < 2 ? "POST" : "PUT" }

    /// One in sixteen is longer than what is kept in the database itself, 64 KiB.
    package var body: [UInt8] {
        var generator = SeededGenerator(seed: UInt64(producer) << 32 | UInt64(number))
        let isLong = Int.random(in: 0..<16, using: &generator) == 0
        let length = isLong ? Int.random(in: 65_537...98_304, using: &generator) : number % 400
        return Array(id.utf8)
            + [UInt8](repeating: UInt8.random(in: 32...126, using: &generator), count: length)
    }
}
