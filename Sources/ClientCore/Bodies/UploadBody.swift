package import Foundation
internal import FoundationNetworking
internal import Glibc
package import NetwatchEventLoop
package import NetwatchTransport
internal import Synchronization

/// The body of an upload.
package enum UploadBody: Sendable {
    case data(Data)
    /// A file that is read again for every transfer.
    case file(URL, TemporaryFile? = nil)
    /// A stream, which can be read only once.
    case stream(OneTimeBody)
    /// Bytes that another owner keeps available, read again for every transfer.
    case kept(KeptBody)

    /// Returns the body for one transfer.
    ///
    /// - Throws: ``AFError/fileFailed(error:url:)`` if a file cannot be read, and
    ///   `URLError.requestBodyStreamExhausted` if a stream was already read.
    func transferBody() throws -> TransferBody {
        switch self {
        case .data(let data): .bytes(Array(data))
        case .file(let url, _): .source(try Self.source(of: url))
        case .stream(let body): .source(try body.take())
        case .kept(let body): .source(BufferedBodySource(body.makeReader(), length: body.length))
        }
    }

    /// The length in bytes; `nil` if it is not known before reading.
    var byteCount: Int64? {
        switch self {
        case .data(let data): Int64(data.count)
        case .kept(let body): body.length
        case .file, .stream: nil
        }
    }

    /// Deletes a temporary file, because nothing will be sent any more. The request itself may stay referenced.
    func release() {
        if case .file(_, let file?) = self { file.remove() }
    }

    private static func source(of url: URL) throws -> BufferedBodySource {
        guard url.isFileURL else { throw AFError.invalidURL(url: url) }
        do {
            return try BufferedBodySource(path: url.localPath())
        } catch {
            throw AFError.fileFailed(error: error, url: url)
        }
    }
}

/// A body that its owner keeps open, so that its contents are the same for every transfer.
package struct KeptBody: Sendable {
    let length: Int64
    let makeReader: @Sendable () -> any BlockingReader

    /// - Parameters:
    ///   - length: The length in bytes. If a reader provides a different length, its transfer fails.
    ///   - makeReader: Returns a reader that starts at the first byte. Must not block.
    package init(length: Int64, makeReader: @escaping @Sendable () -> any BlockingReader) {
        self.length = length
        self.makeReader = makeReader
    }

    /// Opens a regular file, with its current length. It stays open, and is read by one transfer at a time.
    ///
    /// - Throws: ``SystemError`` if the file cannot be opened; `EISDIR` or `EINVAL` if it is not a regular file.
    package init(file path: String) throws(SystemError) {
        let reader = try FileReader(path: path)
        self.init(length: reader.length) {
            _ = reader.rewind()
            return reader
        }
    }
}

/// The body from a stream, usable for a single transfer.
package final class OneTimeBody: Sendable {
    private let source: Mutex<BufferedBodySource?>
    /// Used only to compare identities.
    nonisolated(unsafe) private let stream: InputStream

    /// Whether the stream has already been used.
    var isTaken: Bool { source.withLock { $0 == nil } }

    init(_ stream: sending InputStream) {
        nonisolated(unsafe) let given = stream
        self.stream = given
        source = Mutex(BufferedBodySource(InputStreamReader(given), length: nil))
    }

    /// Returns whether the stream is the body of this request.
    func isBody(of request: URLRequest) -> Bool { request.httpBodyStream === stream }

    func take() throws -> BufferedBodySource {
        let source = source.withLock { source in
            defer { source = nil }
            return source
        }
        guard let source else { throw URLError(.requestBodyStreamExhausted) }
        return source
    }
}

/// A file that is deleted with its last reference, or earlier.
package final class TemporaryFile: Sendable {
    package let url: URL

    init(_ url: URL) {
        self.url = url
    }

    deinit { remove() }

    func remove() {
        unlink(url.path)
    }
}

extension UploadBody {
    /// Creates the body of a request that has a body stream.
    ///
    /// - Parameter former: The body of the previous attempt. It may be the same stream, which further attempts find
    ///   already read.
    init?(streamOf request: URLRequest, after former: UploadBody?) {
        if case .stream(let body)? = former, body.isBody(of: request) {
            self = .stream(body)
            return
        }
        guard let stream = request.httpBodyStream else { return nil }
        // A program that sends a request with a stream transfers ownership of the stream.
        nonisolated(unsafe) let given = stream
        self = .stream(OneTimeBody(given))
    }
}

extension InputStreamReader: BlockingReader {}
