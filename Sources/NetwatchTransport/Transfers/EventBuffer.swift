/// A buffer that combines the events of a transfer, so that few deliveries are needed. A small response is delivered in
/// one call with its head, body and end.
struct EventBuffer {
    /// The number of complete body pieces that are buffered before delivery. Each delivery wakes a thread, so single
    /// pieces would be expensive.
    private static let maximumPieces = 4

    private var events: [TransferEvent] = []
    /// The current, incomplete piece of the body.
    private var piece: [UInt8] = []
    /// The number of complete pieces.
    private var pieces = 0
    /// The pool of reusable memory. Dropped after a turn without a complete piece.
    private var pool: PiecePool?
    private var isPoolUsed = false

    var isEmpty: Bool { events.isEmpty && piece.isEmpty }

    /// Whether enough complete pieces are buffered to deliver them before the end of the turn.
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

    /// Returns all events, including an incomplete piece. Called at the end of a turn.
    mutating func take() -> [TransferEvent] {
        endPiece()
        if !isPoolUsed, pool != nil { (pool, piece) = (nil, []) }
        isPoolUsed = false
        return takeComplete()
    }

    /// Returns the complete events, and keeps the incomplete piece for later.
    mutating func takeComplete() -> [TransferEvent] {
        defer { (events, pieces) = ([], 0) }
        return events
    }

    private mutating func endPiece() {
        guard !piece.isEmpty else { return }
        // A small piece is copied, because a consumer that retains it would otherwise retain 64 KiB. A server may send
        // a body byte by byte.
        if piece.count < piece.capacity / 2 {
            events.append(.body(BodyPiece(piece.withUnsafeBytes { Array($0) }, of: nil)))
            piece.removeAll(keepingCapacity: true)
        } else {
            events.append(.body(BodyPiece(piece, of: pool)))
            piece = []
        }
    }
}
