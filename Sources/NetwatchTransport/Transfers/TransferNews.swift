/// What a transfer has to tell since it was last asked, in as few pieces as possible: a small response is told in
/// one go, head, body and end.
struct TransferNews {
    /// A piece of a body that comes in several chunks is at most so long, in bytes.
    private static let pieceSize = 64 * 1024

    private var events: [TransferEvent] = []
    /// The end of the body so far.
    private var piece: [UInt8] = []

    var isEmpty: Bool { events.isEmpty && piece.isEmpty }

    /// Whether there is a whole piece of a body, which nobody should have to wait for, nor keep.
    private(set) var hasPiece = false

    mutating func add(_ event: TransferEvent) {
        endPiece()
        // A small response is a head, a piece, progress and an end.
        if events.isEmpty { events.reserveCapacity(4) }
        events.append(event)
    }

    mutating func add(body: UnsafeRawBufferPointer) {
        if piece.count + body.count > Self.pieceSize {
            endPiece()
            hasPiece = true
        }
        if piece.isEmpty {
            piece = Array(body)
        } else {
            piece.reserveCapacity(Self.pieceSize)
            piece.append(contentsOf: body)
        }
    }

    mutating func take() -> [TransferEvent] {
        endPiece()
        defer { (events, hasPiece) = ([], false) }
        return events
    }

    private mutating func endPiece() {
        guard !piece.isEmpty else { return }
        events.append(.body(piece))
        piece = []
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
