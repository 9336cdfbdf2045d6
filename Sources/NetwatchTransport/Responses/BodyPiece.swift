internal import NetwatchEventLoop

/// A part of a response body. Copies share the memory.
package struct BodyPiece: Sendable {
    /// The size of a piece in bytes. A piece is larger only if libcurl delivers a larger chunk at once.
    static let size = 64 * 1024

    private enum Storage: Sendable {
        /// The bytes of a small or of an unusually large piece.
        case array([UInt8])
        case block(PieceBlock)
    }

    private let storage: Storage

    package init(_ bytes: [UInt8]) {
        storage = .array(bytes)
    }

    init(_ block: PieceBlock) {
        storage = .block(block)
    }

    package var count: Int {
        switch storage {
        case .array(let bytes): bytes.count
        case .block(let block): block.count
        }
    }

    /// The memory that the piece occupies, in bytes.
    package var footprint: Int {
        switch storage {
        case .array(let bytes): bytes.capacity
        case .block: Self.size
        }
    }

    /// A copy of the bytes.
    package var bytes: [UInt8] { withUnsafeBytes { Array($0) } }

    package func withUnsafeBytes<Result>(
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        switch storage {
        case .array(let bytes): try bytes.withUnsafeBytes(body)
        case .block(let block): try withExtendedLifetime(block) { try body(block.bytes) }
        }
    }

    /// The memory of a large piece, which stays valid as long as the program retains the block; `nil` for a piece that
    /// can only be copied.
    package var block: PieceBlock? {
        if case .block(let block) = storage { block } else { nil }
    }
}

/// Memory of ``BodyPiece/size`` bytes. When the last reference is released, the memory returns to its pool.
///
/// The transfer alone writes to a block, before the block becomes part of a ``BodyPiece``. After that nothing changes it.
package final class PieceBlock: @unchecked Sendable {
    private let memory: PiecePool.Memory
    private let pool: PiecePool
    private(set) var count = 0

    fileprivate init(_ memory: PiecePool.Memory, of pool: PiecePool) {
        self.memory = memory
        self.pool = pool
    }

    deinit { pool.put(memory) }

    /// The written bytes. The pointer is valid until the block is released.
    package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: memory.start, count: count) }

    /// The number of bytes that can still be written.
    var room: Int { BodyPiece.size - count }

    func append(_ bytes: UnsafeRawBufferPointer) {
        precondition(bytes.count <= room, "a piece of a body exceeds its memory")
        guard let source = bytes.baseAddress else { return }
        (memory.start + count).copyMemory(from: source, byteCount: bytes.count)
        count += bytes.count
    }

    func removeAll() {
        count = 0
    }
}

/// A pool of the memory of released pieces, which later pieces reuse.
///
/// Without the pool, the consumer's thread would free the memory. The allocator would return it to the system, and the
/// kernel would map it again page by page. That takes as long as receiving the data.
final class PiecePool: Sendable {
    /// The maximum number of spare blocks. Together they have 1 MiB, the amount that may wait for delivery before the
    /// transfer is paused.
    private static let maximumSpare = 16

    /// The memory of one block. It has one owner at a time: a ``PieceBlock`` or the pool.
    fileprivate struct Memory: @unchecked Sendable {
        let start = UnsafeMutableRawPointer.allocate(byteCount: BodyPiece.size, alignment: 16)
    }

    private let spare = Lock<[Memory]>([])

    deinit {
        spare.withLock { for memory in $0 { memory.start.deallocate() } }
    }

    /// Returns an empty block.
    func take() -> PieceBlock {
        PieceBlock(spare.withLock { $0.popLast() } ?? Memory(), of: self)
    }

    fileprivate func put(_ memory: Memory) {
        let isKept = spare.withLock { spare in
            guard spare.count < Self.maximumSpare else { return false }
            spare.append(memory)
            return true
        }
        if !isKept { memory.start.deallocate() }
    }
}
