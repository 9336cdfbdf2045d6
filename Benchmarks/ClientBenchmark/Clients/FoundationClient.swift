internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop

/// Foundation's `URLSession`.
struct FoundationClient: Client {
    static let name = "foundation"

    private let session: URLSession
    private let counter = BodyCounter()

    init(connections: Int) {
        let configuration = URLSessionConfiguration.default
        configuration.httpMaximumConnectionsPerHost = connections
        // netwatch has no cache either.
        configuration.urlCache = nil
        session = URLSession(configuration: configuration)
    }

    func get(_ url: String, _ completion: @escaping @Sendable (Bool) -> Void) {
        session.dataTask(with: URL(string: url)!) { data, response, _ in
            completion((response as? HTTPURLResponse)?.statusCode == 200 && data?.isEmpty == false)
        }.resume()
    }

    func download(_ url: String) async throws -> Int {
        try await counter.count(URLRequest(url: URL(string: url)!))
    }

    func save(_ url: String, to path: String) async throws -> Int {
        try await withCheckedThrowingContinuation { continuation in
            session.downloadTask(with: URL(string: url)!) { file, _, error in
                continuation.resume(with: Result { try Self.move(file, to: path, error) })
            }.resume()
        }
    }

    private static func move(_ file: URL?, to path: String, _ error: (any Error)?) throws -> Int {
        guard let file else { throw error ?? Unanswered() }
        try FileManager.default.moveItem(at: file, to: URL(fileURLWithPath: path))
        return try length(ofFile: path)
    }

    func upload(_ path: String, to url: String) async throws {
        var request = URLRequest(url: URL(string: url)!)
        request.httpMethod = "PUT"
        let (_, response) = try await session.upload(for: request, fromFile: URL(fileURLWithPath: path))
        guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw Unanswered() }
    }
}

/// Downloads a body and counts its bytes as they arrive. Only the delegate of a session receives them, so the download
/// runs in a separate session.
private final class BodyCounter: NSObject, URLSessionDataDelegate, Sendable {
    private struct State {
        var bytes = 0
        var continuation: CheckedContinuation<Int, any Error>?
    }

    private let state = Lock(State())

    func count(_ request: URLRequest) async throws -> Int {
        let session = URLSession(configuration: .ephemeral, delegate: self, delegateQueue: nil)
        return try await withCheckedThrowingContinuation { continuation in
            state.withLock { $0.continuation = continuation }
            session.dataTask(with: request).resume()
        }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        state.withLock { $0.bytes += data.count }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let (bytes, continuation) = state.withLock { ($0.bytes, $0.continuation) }
        continuation?.resume(with: error.map(Result.failure) ?? .success(bytes))
    }
}
