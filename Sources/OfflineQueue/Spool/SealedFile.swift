internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// An encrypted spool file. It is written once, from beginning to end, and can then be read at any offset.
///
/// The file consists of chunks of 64 KiB plaintext. Each is encrypted with the file's own key, and followed by its tag.
/// The nonce contains the number of the chunk and whether the chunk is the last one (the STREAM construction of Hoang,
/// Reyhanitabar, Rogaway and Vizár, 2015). Chunks that were changed, moved, duplicated or cut off are therefore
/// detected.
final class SealedFile: SpoolFile {
    /// The number of plaintext bytes in a chunk.
    static let chunkBytes = 64 * 1024
    private static let sealedChunkBytes = chunkBytes + AES256.tagBytes

    private struct Writing {
        /// The plaintext of the newest chunk. It is written when it is known whether another chunk follows.
        var pending: [UInt8] = []
        var chunks: Int64 = 0
        var isFinished = false
    }

    private struct Chunk {
        let number: Int64
        let bytes: [UInt8]
    }

    private let file: any SpoolFile
    private let key: FileKey
    private let writing = Lock(Writing())
    /// The chunk that was read last, because readers may read less than a chunk at once.
    private let cache = Lock<Chunk?>(nil)

    init(_ file: any SpoolFile, _ key: FileKey) {
        self.file = file
        self.key = key
    }

    /// Returns the size of the file of a plaintext.
    static func size(of plaintext: Int64) -> Int64 {
        let full = Int64(chunkBytes)
        return plaintext + max(1, (plaintext + full - 1) / full) * Int64(AES256.tagBytes)
    }

    private static func nonce(_ number: Int64, isLast: Bool) -> [UInt8] {
        let digits = (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) }
        return [0, 0, 0] + digits + [isLast ? 1 : 0]
    }

    /// A clone would not be encrypted.
    func clone(_ source: any SpoolFile) -> Bool { false }
}

// MARK: - Writing

extension SealedFile {
    /// Appends bytes. `offset` must be the number of bytes that were written before.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) -> Int {
        try access { writing throws(SystemError) in
            let size = writing.chunks * Int64(Self.chunkBytes) + Int64(writing.pending.count)
            guard !writing.isFinished, offset == size else { throw SystemError(call: "write", errno: ESPIPE) }
            if writing.pending.count == Self.chunkBytes { try write(&writing, isLast: false) }
            let part = bytes.prefix(Self.chunkBytes - writing.pending.count)
            writing.pending += part
            return part.count
        }
    }

    /// Writes the last chunk, and makes the file durable. Nothing can be written afterwards.
    func sync() throws(SystemError) {
        try access { writing throws(SystemError) in
            guard !writing.isFinished else { return }
            try write(&writing, isLast: true)
            writing.isFinished = true
        }
        try file.sync()
    }

    private func access<Value>(
        _ body: (inout Writing) throws(SystemError) -> Value
    ) throws(SystemError) -> Value {
        try writing.withLock { writing throws(SystemError) in try body(&writing) }
    }

    private func write(_ writing: inout Writing, isLast: Bool) throws(SystemError) {
        var nonce = Self.nonce(writing.chunks, isLast: isLast)
        var sealed = [UInt8](repeating: 0, count: writing.pending.count + AES256.tagBytes)
        try nonce.withRawBytes { nonce throws(SystemError) in
            try writing.pending.withRawBytes { plain throws(SystemError) in
                try sealed.withMutableRawBytes { sealed throws(SystemError) in
                    try AES256.seal(
                        plain,
                        key: key.memory.bytes,
                        nonce: nonce,
                        context: .empty,
                        into: sealed
                    )
                }
            }
        }
        let place = writing.chunks * Int64(Self.sealedChunkBytes)
        try sealed.withRawBytes { sealed throws(SystemError) in try file.writeAll(sealed, at: place) }
        writing.pending.removeAll(keepingCapacity: true)
        writing.chunks += 1
    }
}

// MARK: - Reading

extension SealedFile {
    /// The size of the plaintext.
    ///
    /// - Throws: ``SystemError`` `EBADMSG` if no complete file has this size.
    func size() throws(SystemError) -> Int64 {
        let (chunks, last) = try layout()
        return (chunks - 1) * Int64(Self.chunkBytes) + Int64(last - AES256.tagBytes)
    }

    /// Returns the number of chunks, and the size of the last one in the file.
    private func layout() throws(SystemError) -> (chunks: Int64, last: Int) {
        let size = try file.size()
        let full = Int64(Self.sealedChunkBytes)
        guard size > 0 else { throw .wrongTag }
        let chunks = (size + full - 1) / full
        let last = Int(size - (chunks - 1) * full)
        guard last >= AES256.tagBytes else { throw .wrongTag }
        return (chunks, last)
    }

    /// - Throws: ``SystemError`` `EBADMSG` if the chunk was changed.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SystemError) -> Int {
        let number = offset / Int64(Self.chunkBytes)
        let bytes = try chunk(number)
        let rest = bytes.dropFirst(Int(offset - number * Int64(Self.chunkBytes))).prefix(buffer.count)
        buffer.copyBytes(from: rest)
        return rest.count
    }

    /// Returns the plaintext of a chunk; empty behind the end of the file.
    private func chunk(_ number: Int64) throws(SystemError) -> [UInt8] {
        if let cached = cache.withLock({ $0 }), cached.number == number { return cached.bytes }
        let (chunks, last) = try layout()
        guard number < chunks else { return [] }
        let isLast = number == chunks - 1
        let size = isLast ? last : Self.sealedChunkBytes
        var (nonce, sealed) = (Self.nonce(number, isLast: isLast), [UInt8](repeating: 0, count: size))
        var plain = [UInt8](repeating: 0, count: size - AES256.tagBytes)
        try sealed.withMutableRawBytes { sealed throws(SystemError) in
            try file.readAll(into: sealed, at: number * Int64(Self.sealedChunkBytes))
        }
        try nonce.withRawBytes { nonce throws(SystemError) in
            try sealed.withRawBytes { sealed throws(SystemError) in
                try plain.withMutableRawBytes { plain throws(SystemError) in
                    try AES256.open(sealed, key: key.memory.bytes, nonce: nonce, context: .empty, into: plain)
                }
            }
        }
        let read = Chunk(number: number, bytes: plain)
        cache.withLock { $0 = read }
        return read.bytes
    }
}

extension UnsafeRawBufferPointer {
    fileprivate static var empty: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }
}

extension [UInt8] {
    fileprivate mutating func withMutableRawBytes<Value>(
        _ body: (UnsafeMutableRawBufferPointer) throws(SystemError) -> Value
    ) throws(SystemError) -> Value {
        let result = withUnsafeMutableBytes { bytes in
            Result { () throws(SystemError) in try body(bytes) }
        }
        return try result.get()
    }
}

extension SpoolFile {
    fileprivate func writeAll(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) {
        var written = 0
        while written < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(written))
            let count = try write(rest, at: offset + Int64(written))
            guard count > 0 else { throw SystemError(call: "write", errno: EIO) }
            written += count
        }
    }

    /// - Throws: ``SystemError`` `EBADMSG` if the file ends before.
    fileprivate func readAll(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SystemError)
    {
        var filled = 0
        while filled < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer.dropFirst(filled))
            let count = try read(into: rest, at: offset + Int64(filled))
            guard count > 0 else { throw .wrongTag }
            filled += count
        }
    }
}

/// Reads a file from beginning to end in chunks.
struct SpoolChunks: ~Copyable {
    /// The chunk size in bytes: 128 KiB, so that the system calls take little time compared with the hash.
    private static let size = 128 * 1024

    private let file: any SpoolFile
    private let buffer: UnsafeMutableRawBufferPointer
    private var offset: Int64 = 0

    init(of file: any SpoolFile) {
        self.file = file
        buffer = .allocate(byteCount: Self.size, alignment: 1)
    }

    deinit {
        buffer.deallocate()
    }

    /// Returns the next bytes; `nil` at the end of the file. They are valid until the next call.
    mutating func next() throws(SystemError) -> UnsafeRawBufferPointer? {
        let count = try file.read(into: buffer, at: offset)
        guard count > 0 else { return nil }
        offset += Int64(count)
        return UnsafeRawBufferPointer(rebasing: buffer.prefix(count))
    }
}
