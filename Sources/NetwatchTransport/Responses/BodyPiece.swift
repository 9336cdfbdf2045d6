internal import Synchronization

/// A part of a body. Its transfer reuses the memory after the last reference is released.
package final class BodyPiece: Sendable {
    /// The maximum size of a piece in bytes. A single larger chunk from libcurl becomes one larger piece.
    static let size = 64 * 1024

    package let bytes: [UInt8]
    private let pool: PiecePool?

    init(_ bytes: [UInt8], of pool: PiecePool?) {
        self.bytes = bytes
        self.pool = pool
    }

    deinit { pool?.put(bytes) }
}

/// A pool of the memory of released pieces, for reuse by later pieces.
///
/// Without it, the consumer's thread would return the memory to the system, and the kernel would map it again page by
/// page. That takes as long as receiving the data.
final class PiecePool: Sendable {
    /// The maximum number of spare arrays: 1 MiB, as much as may wait for delivery before the transfer is paused.
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
