/// What a transfer has to tell since it was last asked, in as few pieces as possible: a small response is told in
/// one go, head, body and end.
struct TransferNews {
    /// How many pieces of a body are told at once while more comes, because telling wakes a thread.
    private static let mostPieces = 4

    private var events: [TransferEvent] = []
    /// The end of the body so far.
    private var piece: [UInt8] = []
    /// How many whole pieces there are.
    private var pieces = 0
    /// Only while whole pieces come.
    private var pool: PiecePool?
    private var isPoolUsed = false

    var isEmpty: Bool { events.isEmpty && piece.isEmpty }

    /// Whether there is so much of a body that nobody should have to wait for it, nor keep it.
    var isMuch: Bool { pieces >= Self.mostPieces }

    mutating func add(_ event: TransferEvent) {
        endPiece()
        // A small response is a head, a piece, progress and an end.
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

    /// Takes everything, at the end of a turn.
    mutating func take() -> [TransferEvent] {
        endPiece()
        if !isPoolUsed, pool != nil { (pool, piece) = (nil, []) }
        isPoolUsed = false
        return takeWhole()
    }

    /// Leaves a piece that has room for more.
    mutating func takeWhole() -> [TransferEvent] {
        defer { (events, pieces) = ([], 0) }
        return events
    }

    private mutating func endPiece() {
        guard !piece.isEmpty else { return }
        // Whoever keeps it should not keep much more than its bytes: a server may send them one by one.
        if piece.count < piece.capacity / 2 {
            events.append(.body(BodyPiece(piece.withUnsafeBytes { Array($0) }, of: nil)))
            piece.removeAll(keepingCapacity: true)
        } else {
            events.append(.body(BodyPiece(piece, of: pool)))
            piece = []
        }
    }
}

/// The transfers that have something to tell at the end of a turn of libcurl.
final class NewsRound {
    private var transfers: [Transfer] = []

    func add(_ transfer: Transfer) {
        transfers.append(transfer)
    }

    /// Lets them tell it. Returns how far some of them have come.
    func tell() -> [(id: TransferID, reached: Transfer.Milestones)] {
        guard !transfers.isEmpty else { return [] }
        let told = transfers
        transfers = []
        return told.compactMap { transfer in
            let reached = transfer.tellNews()
            return reached.isEmpty ? nil : (transfer.id, reached)
        }
    }
}
