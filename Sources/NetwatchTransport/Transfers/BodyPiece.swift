internal import Synchronization

/// A part of a body. Its memory is its transfer's again when nobody has the piece any more.
package final class BodyPiece: Sendable {
    /// At most so many bytes, when the body comes in several chunks.
    static let size = 64 * 1024

    package let bytes: [UInt8]
    private let pool: PiecePool?

    init(_ bytes: [UInt8], of pool: PiecePool?) {
        self.bytes = bytes
        self.pool = pool
    }

    deinit { pool?.put(bytes) }
}

/// The memory of pieces that were used up, for those that come next.
///
/// Freed by the thread that has used them, it would go back to the system and be fetched again page by page, which takes
/// as long as receiving what it holds.
final class PiecePool: Sendable {
    /// 1 MiB, as much as may wait for its queue before the transfer is paused.
    private static let most = 16

    private let spare = Mutex<[[UInt8]]>([])

    /// Returns an array without elements that has room for a piece.
    func take() -> [UInt8] {
        var bytes = spare.withLock { $0.popLast() } ?? []
        bytes.removeAll(keepingCapacity: true)
        bytes.reserveCapacity(BodyPiece.size)
        return bytes
    }

    func put(_ bytes: [UInt8]) {
        spare.withLock { if $0.count < Self.most { $0.append(bytes) } }
    }
}
