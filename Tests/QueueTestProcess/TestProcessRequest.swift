internal import NetwatchTestSupport

/// A request of a ``TestProcess``. Its producer and number determine its content, so a receiver can verify that it is
/// complete.
package struct TestProcessRequest: Hashable, Sendable {
    package let producer: Int
    /// Increases with every request of its producer, across all runs.
    package let number: Int

    package init(producer: Int, number: Int) {
        self.producer = producer
        self.number = number
    }

    /// Returns `nil` for an id of another format.
    package init?(id: some StringProtocol) {
        let parts = id.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].first == "p",
            let producer = Int(parts[0].dropFirst()), let number = Int(parts[1])
        else { return nil }
        self.init(producer: producer, number: number)
    }

    package var id: String { "p\(producer)-\(number)" }

    /// Every second request is FIFO, in its producer's own lane.
    package var isFIFO: Bool { !number.isMultiple(of: 2) }

    package var lane: String { isFIFO ? "p\(producer)" : "parallel-\(producer % 4)" }

    /// One in eight is at-most-once: if it may already have been sent, it is held instead of sent again.
    package var isAtMostOnce: Bool { number % 8 == 4 }

    /// Half of the requests of each kind use POST, which is not idempotent, and carry an idempotency key.
    package var method: String { number % 4 < 2 ? "POST" : "PUT" }

    /// One in sixteen is longer than 64 KiB, the largest body that the database itself stores.
    package var body: [UInt8] {
        var generator = SeededGenerator(seed: UInt64(producer) << 32 | UInt64(number))
        let isLong = Int.random(in: 0..<16, using: &generator) == 0
        let length = isLong ? Int.random(in: 65_537...98_304, using: &generator) : number % 400
        return Array(id.utf8)
            + [UInt8](repeating: UInt8.random(in: 32...126, using: &generator), count: length)
    }
}
