package import Foundation
internal import FoundationNetworking
internal import Glibc
package import NetwatchEventLoop
package import NetwatchTransport
internal import Synchronization

/// What an upload sends.
package enum UploadBody: Sendable {
    case data(Data)
    /// A file that is read anew for every transfer.
    case file(URL, TemporaryFile? = nil)
    /// A stream, which can be read only once.
    case stream(OneTimeBody)
    /// Bytes that somebody else keeps, read anew for every transfer.
    case kept(KeptBody)

    /// How a transfer sends it.
    ///
    /// - Throws: ``AFError/fileFailed(error:url:)`` for a file that cannot be read, and
    ///   `URLError.requestBodyStreamExhausted` for a stream that was.
    func transferBody() throws -> TransferBody {
        switch self {
        case .data(let data): .bytes(Array(data))
        case .file(let url, _): .source(try Self.source(of: url))
        case .stream(let body): .source(try body.take())
        case .kept(let body): .source(BufferedBodySource(body.makeReader(), length: body.length))
        }
    }

    /// How many bytes it has; `nil` when only reading it will tell.
    var byteCount: Int64? {
        switch self {
        case .data(let data): Int64(data.count)
        case .kept(let body): body.length
        case .file, .stream: nil
        }
    }

    /// Nothing will be sent any more: a temporary file goes, whoever keeps the request.
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

/// A body that somebody keeps open, so that it is the same whenever it is sent.
package struct KeptBody: Sendable {
    let length: Int64
    let makeReader: @Sendable () -> any BlockingReader

    /// - Parameters:
    ///   - length: How many bytes it has. A reader that comes to another length fails its transfer.
    ///   - makeReader: Makes a reader that begins at the first byte, without waiting for anything.
    package init(length: Int64, makeReader: @escaping @Sendable () -> any BlockingReader) {
        self.length = length
        self.makeReader = makeReader
    }

    /// A regular file, as long as it is now. It is open from now on, and read for one transfer at a time.
    ///
    /// - Throws: ``SystemError`` when it cannot be opened; `EISDIR` or `EINVAL` when it is not a regular file.
    package init(file path: String) throws(SystemError) {
        let reader = try FileReader(path: path)
        self.init(length: reader.length) {
            _ = reader.rewind()
            return reader
        }
    }
}

/// The body that a stream gives, for the one transfer that it lasts for.
package final class OneTimeBody: Sendable {
    private let source: Mutex<BufferedBodySource?>
    /// Only compared with others.
    nonisolated(unsafe) private let stream: InputStream

    /// Whether there is nothing left to read.
    var isTaken: Bool { source.withLock { $0 == nil } }

    init(_ stream: sending InputStream) {
        nonisolated(unsafe) let given = stream
        self.stream = given
        source = Mutex(BufferedBodySource(InputStreamReader(given), length: nil))
    }

    /// Whether it is the body of that request.
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

/// A file that goes with its last reference, or before.
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
    /// The body stream of a request that was made with one.
    ///
    /// - Parameter former: The body of the attempt before, which may be the same stream: further attempts
    ///   find it read.
    init?(streamOf request: URLRequest, after former: UploadBody?) {
        if case .stream(let body)? = former, body.isBody(of: request) {
            self = .stream(body)
            return
        }
        guard let stream = request.httpBodyStream else { return nil }
        // Whoever sends a request with a stream gives the stream away.
        nonisolated(unsafe) let given = stream
        self = .stream(OneTimeBody(given))
    }
}

extension InputStreamReader: BlockingReader {}
