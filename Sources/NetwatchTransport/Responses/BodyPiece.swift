internal import Synchronization

/// A part of a response body. When the last copy is released, the memory returns to the transfer for later pieces.
package struct BodyPiece: Sendable {
    /// The size of a piece in bytes. A piece is larger only if libcurl delivers a larger chunk at once.
    static let size = 64 * 1024

    package let bytes: [UInt8]
    /// `nil` for a piece whose memory does not return to a pool, such as the only piece of a small response.
    private let loan: Loan?

    init(_ bytes: [UInt8], of pool: PiecePool?) {
        self.bytes = bytes
        loan = pool.map { Loan(bytes, of: $0) }
    }

    /// The memory of a pool. The copies of a piece share it.
    private final class Loan: Sendable {
        private let bytes: [UInt8]
        private let pool: PiecePool

        init(_ bytes: [UInt8], of pool: PiecePool) {
            self.bytes = bytes
            self.pool = pool
        }

        deinit { pool.put(bytes) }
    }
}

/// A pool of the memory of released pieces, which later pieces reuse.
///
/// Without the pool, the consumer's thread would free the memory. The allocator would return it to the system, and the
/// kernel would map it again page by page. That takes as long as receiving the data.
final class PiecePool: Sendable {
    /// The maximum number of spare arrays. Together they have 1 MiB, the amount that may wait for delivery before the
    /// transfer is paused.
    private static let maximumSpare = 16

    private let spare = Mutex<[[UInt8]]>([])

    /// Returns an empty array with the capacity of a piece.
    func take() -> [UInt8] {
        var bytes = spare.withLock { $0.popLast() } ?? []
        bytes.removeAll(keepingCapacity: true)
        bytes.reserveCapacity(BodyPiece.size)
        return bytes
    }

    func put(_ bytes: [UInt8]) {
        spare.withLock { if $0.count < Self.maximumSpare { $0.append(bytes) } }
    }
}
