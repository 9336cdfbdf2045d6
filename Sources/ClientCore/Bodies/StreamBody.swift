internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport
internal import Synchronization

/// The body from a stream, usable for a single transfer.
package final class StreamBody: Sendable {
    private let source: Mutex<BufferedBodySource?>
    /// Used only to compare identities.
    nonisolated(unsafe) private let stream: InputStream

    /// Whether the stream has already been used.
    var isConsumed: Bool { source.withLock { $0 == nil } }

    init(_ stream: sending InputStream) {
        nonisolated(unsafe) let owned = stream
        self.stream = owned
        source = Mutex(BufferedBodySource(InputStreamReader(owned), length: nil))
    }

    /// Returns whether the stream is the body of this request.
    func isBody(of request: URLRequest) -> Bool { request.httpBodyStream === stream }

    func consume() throws -> BufferedBodySource {
        let source = source.withLock { source in
            defer { source = nil }
            return source
        }
        guard let source else { throw URLError(.requestBodyStreamExhausted) }
        return source
    }
}
