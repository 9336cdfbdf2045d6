/// A buffer that combines the events of a transfer, so that few deliveries are needed. A small response is delivered in
/// one call with its head, body and end.
struct EventBuffer {
    /// The number of complete body pieces that are buffered before delivery. Each delivery wakes a thread, so single
    /// pieces would be expensive.
    private static let maximumPieces = 4

    private var events: [TransferEvent] = []
    /// The current, incomplete piece of a body without a pool.
    private var piece: [UInt8] = []
    /// The current, incomplete piece of a body with a pool.
    private var block: PieceBlock?
    /// The number of complete pieces.
    private var pieces = 0
    /// The pool of reusable memory, which large bodies use. Dropped after a turn without a complete piece.
    private var pool: PiecePool?
    private var isPoolUsed = false

    var isEmpty: Bool { events.isEmpty && pieceCount == 0 }

    /// The number of bytes in the current piece.
    private var pieceCount: Int { piece.count + (block?.count ?? 0) }

    /// Whether enough complete pieces are buffered to deliver them before the end of the turn.
    var isFull: Bool { pieces >= Self.maximumPieces }

    mutating func add(_ event: TransferEvent) {
        endPiece()
        // A small response consists of a head, a piece, progress and an end.
        if events.isEmpty { events.reserveCapacity(4) }
        events.append(event)
    }

    mutating func add(body: UnsafeRawBufferPointer) {
        if pieceCount + body.count > BodyPiece.size {
            endPiece()
            pieces += 1
            pool = pool ?? PiecePool()
            isPoolUsed = true
        }
        guard let pool, body.count <= BodyPiece.size else { return piece.append(contentsOf: body) }
        let block = block ?? pool.take()
        block.append(body)
        self.block = block
    }

    /// Returns all events, including an incomplete piece. Called at the end of a turn.
    mutating func take() -> [TransferEvent] {
        endPiece()
        if !isPoolUsed, pool != nil { (pool, block) = (nil, nil) }
        isPoolUsed = false
        return takeComplete()
    }

    /// Returns the complete events, and keeps the incomplete piece for later.
    mutating func takeComplete() -> [TransferEvent] {
        defer { (events, pieces) = ([], 0) }
        return events
    }

    private mutating func endPiece() {
        if let block, block.count > 0 { end(block) }
        guard !piece.isEmpty else { return }
        events.append(.body(BodyPiece(piece)))
        piece = []
    }

    /// A small piece is copied, because a consumer that retains it would otherwise retain the whole block. A server may
    /// send a body byte by byte.
    private mutating func end(_ block: PieceBlock) {
        if block.count < BodyPiece.size / 2 {
            events.append(.body(BodyPiece(Array(block.bytes))))
            block.removeAll()
        } else {
            events.append(.body(BodyPiece(block)))
            self.block = nil
        }
    }
}
