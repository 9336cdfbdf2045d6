internal import NetwatchEventLoop
internal import Testing

@testable internal import NetwatchTransport

/// The division of bodies into pieces.
@Suite struct EventBufferTests {
    private var buffer = EventBuffer()

    private mutating func add(_ bytes: some Collection<UInt8>) {
        Array(bytes).withUnsafeBytes { buffer.add(body: $0) }
    }

    private func pieces(_ events: [TransferEvent]) -> [[UInt8]] {
        events.compactMap { if case .body(let piece) = $0 { piece.bytes } else { nil } }
    }

    @Test mutating func `a large body is delivered in complete pieces, four at a time, in order`() {
        let body = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 / 251) }
        var delivered: [[[UInt8]]] = []
        for start in stride(from: 0, to: body.count, by: 10_000) {
            add(body[start..<start + 10_000])
            if buffer.isFull { delivered.append(pieces(buffer.takeComplete())) }
        }
        #expect(delivered.allSatisfy { $0.map(\.count) == [60_000, 60_000, 60_000, 60_000] })
        delivered.append(pieces(buffer.take()))
        #expect(delivered.count == 5 && Array(delivered.joined().joined()) == body)
        #expect(buffer.isEmpty)
    }

    @Test mutating func `a small body is one piece between head and end`() {
        let end = TransferEnd(failure: nil, metrics: TransferMetrics(startedAt: .now))
        add([1, 2])
        add([3])
        buffer.add(.end(end))
        let events = buffer.take()
        #expect(pieces(Array(events.prefix(1))) == [[1, 2, 3]] && events.count == 2)
    }

    /// A server that sends single bytes must not fill the memory of a consumer that retains the pieces.
    @Test mutating func `a piece uses at most about twice the memory of its bytes`() {
        add([UInt8](repeating: 0, count: BodyPiece.size))
        for count in [1, 2, 100, 10_000] {
            add([UInt8](repeating: 1, count: count / 2))
            add([UInt8](repeating: 1, count: count - count / 2))
            let events = buffer.take()
            #expect(pieces(events).last?.count == count)
            #expect(events.last.map(footprint) ?? .max <= 2 * count + 64)
        }
    }

    private func footprint(_ event: TransferEvent) -> Int {
        if case .body(let piece) = event { piece.footprint } else { 0 }
    }

    @Test func `the memory of a piece is reused after its last reference is released`() {
        let pool = PiecePool()
        var block: PieceBlock? = pool.take()
        ([1, 2, 3] as [UInt8]).withUnsafeBytes { block?.append($0) }
        let memory = block?.bytes.baseAddress
        var piece = block.map { BodyPiece($0) }
        block = nil
        #expect(pool.take().bytes.baseAddress != memory)
        #expect(piece?.bytes == [1, 2, 3])
        piece = nil
        // The last block that was returned is taken first.
        let next = pool.take()
        #expect(next.count == 0 && next.bytes.baseAddress == memory)
    }
}
