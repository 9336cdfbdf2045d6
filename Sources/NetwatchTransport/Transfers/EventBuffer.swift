/// Buffers the events of a transfer and combines them. A small response is delivered in one call: head, body and end.
struct EventBuffer {
    /// The number of body pieces that are buffered before delivery, because each delivery wakes a thread.
    private static let maximumPieces = 4

    private var events: [TransferEvent] = []
    /// The current, incomplete piece of the body.
    private var piece: [UInt8] = []
    /// The number of complete pieces.
    private var pieces = 0
    /// Set only while complete pieces arrive.
    private var pool: PiecePool?
    private var isPoolUsed = false

    var isEmpty: Bool { events.isEmpty && piece.isEmpty }

    /// Whether so much of a body is buffered that it should be delivered before the end of the turn.
    var isFull: Bool { pieces >= Self.maximumPieces }

    mutating func add(_ event: TransferEvent) {
        endPiece()
        // A small response consists of a head, a piece, progress and an end.
        if events.isEmpty { events.reserveCapacity(4) }
        events.append(event)
    }

    mutating func add(body: UnsafeRawBufferPointer) {
        if piece.count + body.count > BodyPiece.size {
            endPiece()
            pieces += 1
            pool = pool ?? PiecePool()
            isPoolUsed = true
        }
        if piece.capacity == 0, let pool { piece = pool.take() }
        piece.append(contentsOf: body)
    }

    /// Returns all events, at the end of a turn.
    mutating func take() -> [TransferEvent] {
        endPiece()
        if !isPoolUsed, pool != nil { (pool, piece) = (nil, []) }
        isPoolUsed = false
        return takeComplete()
    }

    /// Returns the complete events and keeps a piece that is not full.
    mutating func takeComplete() -> [TransferEvent] {
        defer { (events, pieces) = ([], 0) }
        return events
    }

    private mutating func endPiece() {
        guard !piece.isEmpty else { return }
        // A consumer that retains the piece should not retain much more than its bytes: a server may send them one by
        // one.
        if piece.count < piece.capacity / 2 {
            events.append(.body(BodyPiece(piece.withUnsafeBytes { Array($0) }, of: nil)))
            piece.removeAll(keepingCapacity: true)
        } else {
            events.append(.body(BodyPiece(piece, of: pool)))
            piece = []
        }
    }
}
