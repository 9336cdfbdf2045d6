internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTransport

/// A request body that is read from an `InputStream`. A stream cannot be rewound, so only one transfer can send it.
package final class StreamBody: Sendable {
    private let source: Lock<BufferedBodySource?>
    private let reader: InputStreamReader
    /// The stream, used only to compare identities, which needs no lock.
    nonisolated(unsafe) private let stream: InputStream

    /// Whether a transfer has already taken the stream with ``consume()``.
    var isConsumed: Bool { source.withLock { $0 == nil } }

    init(_ stream: sending InputStream) {
        nonisolated(unsafe) let owned = stream
        self.stream = owned
        reader = InputStreamReader(owned)
        source = Lock(BufferedBodySource(reader, length: nil))
    }

    /// Returns whether the stream is the body stream of the request.
    func isBody(of request: URLRequest) -> Bool { request.httpBodyStream === stream }

    /// Takes the stream, so that no later transfer can send it, and returns a reader for the whole stream. Returns
    /// `nil` if an earlier attempt has read a part of it. An attempt that failed before it had a connection has read
    /// nothing.
    func takeUnread() -> InputStreamReader? {
        let source = source.withLock { source in
            defer { source = nil }
            return source
        }
        source?.cancel()
        return reader.takeUnread()
    }

    /// Returns the source of the stream's bytes, once.
    ///
    /// - Throws: `URLError.requestBodyStreamExhausted` on all later calls.
    func consume() throws -> BufferedBodySource {
        let source = source.withLock { source in
            defer { source = nil }
            return source
        }
        guard let source else { throw URLError.streamExhausted }
        return source
    }
}
