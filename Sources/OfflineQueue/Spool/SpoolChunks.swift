internal import NetwatchEventLoop

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
