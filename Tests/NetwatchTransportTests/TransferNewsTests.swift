internal import Testing

@testable internal import NetwatchTransport

/// How bodies are split into pieces.
@Suite struct TransferNewsTests {
    private var news = TransferNews()

    private mutating func add(_ bytes: some Collection<UInt8>) {
        Array(bytes).withUnsafeBytes { news.add(body: $0) }
    }

    private func pieces(_ events: [TransferEvent]) -> [[UInt8]] {
        events.compactMap { if case .body(let piece) = $0 { piece.bytes } else { nil } }
    }

    @Test mutating func `a large body comes in whole pieces, four at a time, in order`() {
        let body = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 / 251) }
        var told: [[[UInt8]]] = []
        for start in stride(from: 0, to: body.count, by: 10_000) {
            add(body[start..<start + 10_000])
            if news.isMuch { told.append(pieces(news.takeWhole())) }
        }
        #expect(told.allSatisfy { $0.map(\.count) == [60_000, 60_000, 60_000, 60_000] })
        told.append(pieces(news.take()))
        #expect(told.count == 5 && Array(told.joined().joined()) == body)
        #expect(news.isEmpty)
    }

    @Test mutating func `a small body is one piece between its head and its end`() {
        let end = TransferEnd(failure: nil, metrics: TransferMetrics(startedAt: .now))
        add([1, 2])
        add([3])
        news.add(.end(end))
        let events = news.take()
        #expect(pieces(Array(events.prefix(1))) == [[1, 2, 3]] && events.count == 2)
    }

    /// Otherwise a server that sends single bytes would fill the memory of a consumer that keeps the pieces.
    @Test mutating func `a piece holds not much more than its bytes`() {
        add([UInt8](repeating: 0, count: BodyPiece.size))
        for count in [1, 2, 100, 10_000] {
            add([UInt8](repeating: 1, count: count / 2))
            add([UInt8](repeating: 1, count: count - count / 2))
            let piece = pieces(news.take()).last
            #expect(piece?.count == count && piece?.capacity ?? .max <= 2 * count + 64)
        }
    }

    @Test func `the memory of a piece is used again when nobody has the piece any more`() {
        let pool = PiecePool()
        var bytes = [UInt8](repeating: 1, count: 10)
        bytes.reserveCapacity(3 * BodyPiece.size)
        var piece: BodyPiece? = BodyPiece(bytes, of: pool)
        bytes = []
        #expect(pool.take().capacity < 2 * BodyPiece.size)
        #expect(piece?.bytes.count == 10)
        piece = nil
        let next = pool.take()
        #expect(next.isEmpty && next.capacity >= 3 * BodyPiece.size)
    }
}
