package import Foundation
internal import FoundationNetworking
package import NetwatchEventLoop
package import NetwatchTransport

/// The body of an upload.
package enum UploadBody: Sendable {
    case data(Data)
    /// A file that every transfer reads from its beginning. The second value is set if netwatch created the file for
    /// this body. ``release()`` then deletes the file.
    case file(URL, TemporaryFile? = nil)
    /// A stream, which can be read only once.
    case stream(StreamBody)
    /// A body of another owner, such as the request queue, that every transfer reads from its beginning.
    case replayable(ReplayableBody)

    /// Returns the body for one transfer.
    ///
    /// - Throws: ``AFError/fileFailed(error:url:)`` if a file cannot be opened, and
    ///   `URLError.requestBodyStreamExhausted` if another transfer has already taken a stream.
    func transferBody() throws -> TransferBody {
        switch self {
        case .data(let data): .bytes(Array(data))
        case .file(let url, _): .source(try Self.source(of: url))
        case .stream(let body): .source(try body.consume())
        case .replayable(let body): .source(BufferedBodySource(body.makeReader(), length: body.length))
        }
    }

    /// The length in bytes; `nil` for a stream, and for a file, because only the transfer opens it.
    var byteCount: Int64? {
        switch self {
        case .data(let data): Int64(data.count)
        case .replayable(let body): body.length
        case .file, .stream: nil
        }
    }

    /// Deletes the temporary file, if there is one. Called at the end of the request, because the program may retain
    /// the request for much longer.
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

extension UploadBody {
    /// Creates the body from the request's `httpBodyStream`. Returns `nil` if the request has none.
    ///
    /// - Parameter previous: The body of the previous attempt. If it has the same stream, it is used again, so that a
    ///   second transfer fails with an error instead of sending an empty body.
    init?(streamOf request: URLRequest, after previous: UploadBody?) {
        if case .stream(let body)? = previous, body.isBody(of: request) {
            self = .stream(body)
            return
        }
        guard let stream = request.httpBodyStream else { return nil }
        // A program must not use a stream any more after sending a request with it.
        nonisolated(unsafe) let owned = stream
        self = .stream(StreamBody(owned))
    }
}

/// A request body that each transfer of a request reads from the first byte, for example after a redirect or in a
/// retry. The code that creates the body must keep the contents available and unchanged until the request ends.
package struct ReplayableBody: Sendable {
    let length: Int64
    let makeReader: @Sendable () -> any BlockingReader

    /// - Parameters:
    ///   - length: The length in bytes. A transfer fails if its reader provides more or fewer bytes.
    ///   - makeReader: Returns a reader that starts at the first byte. Called once per transfer; must not block.
    package init(length: Int64, makeReader: @escaping @Sendable () -> any BlockingReader) {
        self.length = length
        self.makeReader = makeReader
    }

    /// Creates a body from a regular file. The length is the file's current length.
    ///
    /// The file is opened now and stays open. All transfers share this one open file, so only one transfer at a time
    /// may read the body.
    ///
    /// - Throws: ``SystemError`` if the file cannot be opened, with `EISDIR` or `EINVAL` if it is not a regular file.
    package init(file path: String) throws(SystemError) {
        let reader = try FileReader(path: path)
        self.init(length: reader.length) {
            _ = reader.rewind()
            return reader
        }
    }
}
