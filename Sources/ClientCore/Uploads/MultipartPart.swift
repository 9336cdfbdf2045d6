internal import Foundation

/// One part of a form: its header fields, and where its content comes from.
struct MultipartPart {
    let head: Data
    let source: MultipartSource
}

/// Where the content of a part comes from.
enum MultipartSource {
    case data(Data)
    case file(MultipartFile)
    case stream(MultipartStream)

    /// In bytes.
    var length: UInt64 {
        switch self {
        case .data(let data): UInt64(data.count)
        case .file(let file): file.length
        case .stream(let stream): stream.length
        }
    }

    /// Gives exactly ``length`` bytes, or throws.
    func read(into sink: (UnsafeRawBufferPointer) throws -> Void) throws {
        switch self {
        case .data(let data): try data.withUnsafeBytes(sink)
        case .file(let file): try file.read(into: sink)
        case .stream(let stream): try stream.read(into: sink)
        }
    }
}

extension AFError {
    /// A file or a stream gave more or fewer bytes than it was to give.
    public struct UnexpectedInputStreamLength: Error, Hashable, Sendable, CustomStringConvertible {
        /// The file's path, or the name of the stream's field.
        public let part: String
        /// How many bytes the file had when it was added to the form, or the stream was announced with.
        public let bytesExpected: UInt64
        /// How many bytes there are. Of a stream that went on, how many had been read by then.
        public let bytesRead: UInt64

        /// `/tmp/a.log has 12 bytes instead of 10`.
        public var description: String { "\(part) has \(bytesRead) bytes instead of \(bytesExpected)" }
    }
}

/// Reads a part from its beginning to its end.
struct MultipartReader {
    /// As much as is in memory of a part at any time.
    private static let chunkSize = 65536

    /// What to call the part in an error.
    let part: String
    let length: UInt64

    /// - Parameters:
    ///   - read: Fills a buffer and returns how many bytes it has now; 0 at the end.
    ///   - sink: Gets `length` bytes in all. When there are more or fewer it has got fewer than `length`, or
    ///     exactly that many, before the error is thrown.
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
