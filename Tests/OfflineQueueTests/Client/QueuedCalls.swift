internal import ClientCore
internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport
internal import OfflineQueue

/// A session, a queue that takes over its failed requests, and the queue's sender. The test determines the sender's
/// outcomes.
struct QueuedCalls: Sendable {
    /// Nothing listens there: port 1 is reserved (`tcpmux`).
    let url = "http://127.0.0.1:1/readings"
    let session = SessionManager()
    let sender = FakeSender()
    let gate = FakeGate()
    /// The queue on which handlers are called.
    let handlers = DispatchQueue(label: "handlers")
    let queue: OfflineQueue
    private let directory = TemporaryDirectory()

    /// - Parameters:
    ///   - limits: The limits of the queue. Default: those of ``QueueLimits``.
    ///   - delay: Called when a request with the id `delayed` has been stored, before the queue's caller learns that.
    ///     Default: none.
    init(
        limits: QueueLimits = QueueLimits(),
        delay: (@Sendable () async throws -> Void)? = nil
    ) async throws {
        var settings = StoreSettings()
        settings.limits = limits
        var configuration = OfflineQueue.Configuration(withLongTimeouts: directory.path)
        configuration.backoffBase = .seconds(3600)
        configuration.backoffCap = .seconds(7200)
        configuration.stopTimeout = .milliseconds(100)
        let store = try await SQLiteQueueStore(directory: configuration.directory, settings: settings)
        queue = OfflineQueue(
            configuration: configuration,
            store: delay.map { DelayedStore(inner: store, id: "delayed", wait: $0) } ?? store,
            sender: sender,
            gate: gate
        )
        try await queue.start()
    }

    func post(_ body: String, to url: String? = nil) -> URLRequest {
        var request = URLRequest(url: URL(string: url ?? self.url)!)
        request.httpMethod = "POST"
        request.httpBody = Data(body.utf8)
        request.setValue("text/plain", forHTTPHeaderField: "Content-Type")
        return request
    }

    func state(of id: String) async throws -> QueuedRequest.State? {
        try await queue.request(id)?.summary.state
    }
}

extension Attempt {
    /// The body as bytes.
    var bytes: Data {
        switch body {
        case .none: Data()
        case .data(let data): data
        case .file(let file): file.bytes
        }
    }
}

extension OpenedBody {
    fileprivate var bytes: Data {
        let reader = makeReader()
        var bytes = Data(count: Int(body.size))
        var filled = 0
        bytes.withUnsafeMutableBytes { buffer in
            while filled < buffer.count,
                let count = try? reader.read(
                    into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
                ),
                count > 0
            {
                filled += count
            }
        }
        return bytes.prefix(filled)
    }
}
