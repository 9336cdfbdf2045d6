internal import Foundation

/// One part of a form: its header fields and the source of its content.
struct MultipartPart {
    let head: Data
    let source: MultipartSource
}

/// The source of a part's content.
enum MultipartSource {
    case data(Data)
    case file(MultipartFile)
    case stream(MultipartStream)

    /// The length in bytes.
    var length: UInt64 {
        switch self {
        case .data(let data): UInt64(data.count)
        case .file(let file): file.length
        case .stream(let stream): stream.length
        }
    }

    /// Passes the content to `sink`. Throws if the content does not have exactly ``length`` bytes.
    func read(into sink: (UnsafeRawBufferPointer) throws -> Void) throws {
        switch self {
        case .data(let data): try data.withUnsafeBytes(sink)
        case .file(let file): try file.read(into: sink)
        case .stream(let stream): try stream.read(into: sink)
        }
    }
}

extension AFError {
    /// The error for a file or a stream that provided more or fewer bytes than expected.
    public struct UnexpectedInputStreamLength: Error, Hashable, Sendable, CustomStringConvertible {
        /// The path of the file, or the form field's name for a stream.
        public let part: String
        /// The length of the file when it was added to the form, or the announced length of the stream.
        public let bytesExpected: UInt64
        /// The actual length. Reading stops when the content turns out to be too long. In that case this is the number
        /// of bytes read so far.
        public let bytesRead: UInt64

        /// The part and both lengths, for example `/tmp/a.log has 12 bytes instead of 10`.
        public var description: String { "\(part) has \(bytesRead) bytes instead of \(bytesExpected)" }
    }
}

/// Reads a part from its beginning to its end.
struct MultipartReader {
    /// The maximum number of bytes of a part that are in memory at any time.
    private static let chunkSize = 65536

    /// The name of the part in error messages.
    let part: String
    let length: UInt64

    /// Reads the whole part.
    ///
    /// - Parameters:
    ///   - read: Fills a buffer and returns the number of bytes; 0 at the end.
    ///   - sink: Receives `length` bytes in total, never more. If this function throws, the sink may have received
    ///     any number of bytes up to `length`.
    func readAll(
        _ read: (UnsafeMutableRawBufferPointer) throws -> Int,
        into sink: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.chunkSize, alignment: 1)
        defer { buffer.deallocate() }
        var total: UInt64 = 0
        while true {
            let count = try read(buffer)
            if count == 0 { break }
            total += UInt64(count)
            try expect(total <= length, total)
            try sink(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
        try expect(total == length, total)
    }

    private func expect(_ condition: Bool, _ bytesRead: UInt64) throws {
        if !condition { throw unexpectedLength(bytesRead) }
    }

    func unexpectedLength(_ bytesRead: UInt64) -> AFError {
        let error = AFError.UnexpectedInputStreamLength(
            part: part,
            bytesExpected: length,
            bytesRead: bytesRead
        )
        return .multipartEncodingFailed(reason: .inputStreamReadFailed(error: error))
    }
}
