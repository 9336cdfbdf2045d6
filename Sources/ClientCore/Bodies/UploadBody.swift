package import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTransport

/// The body of an upload.
package enum UploadBody: Sendable {
    case data(Data)
    /// A file that is read again for every transfer.
    case file(URL, TemporaryFile? = nil)
    /// A stream, which can be read only once.
    case stream(StreamBody)
    /// Bytes that another owner keeps available, read again for every transfer.
    case replayable(ReplayableBody)

    /// Returns the body for one transfer.
    ///
    /// - Throws: ``AFError/fileFailed(error:url:)`` if a file cannot be read, and
    ///   `URLError.requestBodyStreamExhausted` if a stream was already read.
    func transferBody() throws -> TransferBody {
        switch self {
        case .data(let data): .bytes(Array(data))
        case .file(let url, _): .source(try Self.source(of: url))
        case .stream(let body): .source(try body.consume())
        case .replayable(let body): .source(BufferedBodySource(body.makeReader(), length: body.length))
        }
    }

    /// The length in bytes; `nil` if it is not known before reading.
    var byteCount: Int64? {
        switch self {
        case .data(let data): Int64(data.count)
        case .replayable(let body): body.length
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

extension UploadBody {
    /// Creates the body of a request that has a body stream.
    ///
    /// - Parameter previous: The body of the previous attempt. It may be the same stream, which further attempts find
    ///   already read.
    init?(streamOf request: URLRequest, after previous: UploadBody?) {
        if case .stream(let body)? = previous, body.isBody(of: request) {
            self = .stream(body)
            return
        }
        guard let stream = request.httpBodyStream else { return nil }
        // A program that sends a request with a stream transfers ownership of the stream.
        nonisolated(unsafe) let owned = stream
        self = .stream(StreamBody(owned))
    }
}
