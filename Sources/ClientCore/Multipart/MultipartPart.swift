internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTransport

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

/// A file that is a part of a form.
///
/// The file is read through a descriptor, because Foundation's streams on Linux do not report why they failed.
struct MultipartFile {
    private let url: URL
    /// The length in bytes when the file was added.
    let length: UInt64

    /// - Throws: ``AFError/multipartEncodingFailed(reason:)``.
    init(_ url: URL) throws {
        self.url = url
        length = try OpenedFile.open(url).length
    }

    func read(into sink: (UnsafeRawBufferPointer) throws -> Void) throws {
        let reader = MultipartReader(part: url.path, length: length)
        let file = try OpenedFile.open(url)
        // A file's length is known in advance, so encoding a changed file fails before any of its bytes are written.
        guard file.length == length else { throw reader.unexpectedLength(file.length) }
        try reader.readAll({ try file.read(into: $0) }, into: sink)
    }
}

/// A regular file that is open for reading.
private struct OpenedFile: ~Copyable {
    private let descriptor: FileDescriptor
    let length: UInt64

    static func open(_ url: URL) throws -> OpenedFile {
        guard url.isFileURL, !url.path.isEmpty else { throw failure(.bodyPartURLInvalid(url: url)) }
        // Checked before opening, because opening a device can have side effects.
        try checkKind(at: url)
        let descriptor = try opened(url)
        let length = try length(of: descriptor.rawValue, url)
        return OpenedFile(descriptor: descriptor, length: length)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        do {
            return try systemCall("read") {
                Glibc.read(descriptor.rawValue, buffer.baseAddress, buffer.count)
            }
        } catch {
            throw Self.failure(.inputStreamReadFailed(error: error))
        }
    }

    private init(descriptor: consuming FileDescriptor, length: UInt64) {
        self.descriptor = descriptor
        self.length = length
    }

    private static func checkKind(at url: URL) throws {
        var status = stat()
        do { try systemCall("stat") { stat(url.path, &status) } } catch { throw notReachable(url, error) }
        try checkKind(status, url)
    }

    private static func checkKind(_ status: stat, _ url: URL) throws {
        switch status.st_mode & S_IFMT {
        case S_IFREG: return
        case S_IFDIR: throw failure(.bodyPartFileIsDirectory(at: url))
        default: throw failure(.bodyPartFileSizeNotAvailable(at: url))
        }
    }

    private static func opened(_ url: URL) throws -> FileDescriptor {
        // O_NONBLOCK: if the path has become a FIFO in the meantime, opening it must not block.
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK
        do {
            return FileDescriptor(owning: try systemCall("open") { Glibc.open(url.path, flags) })
        } catch {
            throw notReachable(url, error)
        }
    }

    private static func length(of descriptor: CInt, _ url: URL) throws -> UInt64 {
        var status = stat()
        do {
            try systemCall("fstat") { fstat(descriptor, &status) }
        } catch {
            throw failure(.bodyPartFileSizeQueryFailedWithError(forURL: url, error: error))
        }
        try checkKind(status, url)
        return UInt64(status.st_size)
    }

    private static func notReachable(_ url: URL, _ error: SystemError) -> AFError {
        failure(.bodyPartFileNotReachableWithError(atURL: url, error: error))
    }

    private static func failure(_ reason: AFError.MultipartEncodingFailureReason) -> AFError {
        .multipartEncodingFailed(reason: reason)
    }
}

/// Encodes the header fields of a part, including the empty line at the end.
enum MultipartHead {
    /// Returns the encoded fields of a part with a name and, if they are not `nil`, a file name and a content type.
    ///
    /// - Throws: ``AFError/MultipartEncodingFailureReason/bodyPartHeaderInvalid(name:value:)``.
    static func of(name: String, fileName: String?, mimeType: String?) throws -> Data {
        var disposition = "form-data; name=\(try quoted(name, as: "name"))"
        if let fileName { disposition += "; filename=\(try quoted(fileName, as: "filename"))" }
        var lines = ["Content-Disposition: \(disposition)"]
        if let mimeType { lines.append(try line("Content-Type", mimeType)) }
        return bytes(of: lines)
    }

    /// Returns the encoded fields. `Content-Disposition` comes first and the others are sorted by name, because the
    /// order of a dictionary differs from run to run.
    ///
    /// - Throws: ``AFError/MultipartEncodingFailureReason/bodyPartHeaderInvalid(name:value:)``.
    static func of(_ headers: HTTPHeaders) throws -> Data {
        let isDisposition = { (name: String) in name.lowercased() == "content-disposition" }
        let names = headers.keys.sorted { left, right in
            isDisposition(left) == isDisposition(right) ? left < right : isDisposition(left)
        }
        return bytes(of: try names.map { try line($0, headers[$0] ?? "") })
    }

    private static func bytes(of lines: [String]) -> Data {
        Data((lines + [""]).map { "\($0)\r\n" }.joined().utf8)
    }

    private static func line(_ name: String, _ value: String) throws -> String {
        let isControl = { (byte: UInt8) in byte < 0x20 && byte != 0x09 || byte == 0x7f }
        guard HTTPToken.isValid(name), !value.isEmpty, !value.utf8.contains(where: isControl) else {
            throw invalid(name, value)
        }
        return "\(name): \(value)"
    }

    /// Quotes the text with the escapes of WHATWG HTML, and also escapes a backslash at the end. A parser that supports
    /// the quoted pairs of RFC 822 would read `\"` as an escaped quotation mark, not as the end of the name.
    private static func quoted(_ text: String, as parameter: String) throws -> String {
        guard !text.utf8.contains(0) else { throw invalid(parameter, text) }
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "%22"
            case "\r": result += "%0D"
            case "\n": result += "%0A"
            default: result.unicodeScalars.append(scalar)
            }
        }
        if result.utf8.last == UInt8(ascii: "\\") {
            result.unicodeScalars.removeLast()
            result += "%5C"
        }
        return "\"\(result)\""
    }

    private static func invalid(_ name: String, _ value: String) -> AFError {
        .multipartEncodingFailed(reason: .bodyPartHeaderInvalid(name: name, value: value))
    }
}
