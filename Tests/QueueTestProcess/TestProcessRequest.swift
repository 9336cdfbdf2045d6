internal import NetwatchTestSupport

/// A request of a ``TestProcess``. Its producer and number determine its whole content, so that the server can verify
/// it.
package struct TestProcessRequest: Hashable, Sendable {
    package let producer: Int
    /// The number of the request among those of its producer, in all runs of the process.
    package let number: Int

    package init(producer: Int, number: Int) {
        self.producer = producer
        self.number = number
    }

    /// Parses an id. Returns `nil` if it does not have the format of ``id``.
    package init?(id: some StringProtocol) {
        let parts = id.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].first == "p",
            let producer = Int(parts[0].dropFirst()), let number = Int(parts[1])
        else { return nil }
        self.init(producer: producer, number: number)
    }

    package var id: String { "p\(producer)-\(number)" }

    /// Whether the request belongs to its producer's FIFO lane: every second one does.
    package var isFIFO: Bool { !number.isMultiple(of: 2) }

    package var lane: String { isFIFO ? "p\(producer)" : "parallel-\(producer % 4)" }

    /// Whether the request is at-most-once: one in eight is. If such a request may already have been sent, it is held
    /// instead of being sent again.
    package var isAtMostOnce: Bool { number % 8 == 4 }

    /// The method: POST for half of the requests of each kind, and PUT for the others. A POST gets an idempotency key.
    package var method: String { number % 4 < 2 ? "POST" : "PUT" }

    /// The body. One in sixteen has more than 64 KiB, so that it goes into the spool.
    package var body: [UInt8] {
        var generator = SeededGenerator(seed: UInt64(producer) << 32 | UInt64(number))
        let isLong = Int.random(in: 0..<16, using: &generator) == 0
        let length = isLong ? Int.random(in: 65_537...98_304, using: &generator) : number % 400
        return Array(id.utf8)
            + [UInt8](repeating: UInt8.random(in: 32...126, using: &generator), count: length)
    }
}
