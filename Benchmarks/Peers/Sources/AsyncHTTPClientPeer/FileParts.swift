import Glibc
import NIOCore

/// The contents of a file in parts of 64 KiB.
struct FileParts: AsyncSequence, AsyncIteratorProtocol {
    let length: Int
    private let file: CInt

    init(_ path: String) throws {
        var status = stat()
        file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0, fstat(file, &status) == 0 else { throw Unreadable(path: path) }
        length = Int(status.st_size)
    }

    func makeAsyncIterator() -> FileParts { self }

    mutating func next() async throws -> ByteBuffer? {
        var part = ByteBuffer()
        let count = part.writeWithUnsafeMutableBytes(minimumWritableBytes: 1 << 16) { buffer in
            Swift.max(0, read(file, buffer.baseAddress, buffer.count))
        }
        return count > 0 ? part : nil
    }
}

/// The error of a file that cannot be opened.
struct Unreadable: Error {
    let path: String
}
