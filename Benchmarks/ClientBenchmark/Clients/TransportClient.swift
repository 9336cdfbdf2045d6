internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTransport
internal import Synchronization

/// netwatch's transfer engine alone, without a `SessionManager`.
struct TransportClient: Client {
    static let name = "transport"

    private let pool: TransferPool

    init(connections: Int) {
        pool = TransferPool(connectionsPerHost: connections)
    }

    func get(_ url: String, _ completion: @escaping @Sendable (Bool) -> Void) {
        let answer = Lock((status: 0, bytes: 0))
        pool.start(TransferRequest(url: url)) { events in
            for event in events {
                switch event {
                case .head(let head): answer.withLock { $0.status = head.status }
                case .body(let piece): answer.withLock { $0.bytes += piece.count }
                case .connected, .progress: break
                case .end(let end):
                    let (status, bytes) = answer.withLock { $0 }
                    completion(end.failure == nil && status == 200 && bytes > 0)
                }
            }
        }
    }

    func download(_ url: String) async throws -> Int {
        let bytes = Atomic(0)
        try await transfer(TransferRequest(url: url)) { bytes.wrappingAdd($0.count, ordering: .relaxed) }
        return bytes.load(ordering: .relaxed)
    }

    func save(_ url: String, to path: String) async throws -> Int {
        guard let file = fopen(path, "we") else { throw Unanswered() }
        nonisolated(unsafe) let open = file
        try await transfer(TransferRequest(url: url)) { piece in
            _ = piece.withUnsafeBytes { fwrite($0.baseAddress, 1, $0.count, open) }
        }
        fclose(file)
        return try length(ofFile: path)
    }

    func upload(_ path: String, to url: String) async throws {
        var request = TransferRequest(url: url, method: "PUT")
        request.body = .source(try BufferedBodySource(path: path))
        try await transfer(request) { _ in }
    }

    private func transfer(
        _ request: TransferRequest,
        receive: @escaping @Sendable (BodyPiece) -> Void
    ) async throws {
        let end = await withCheckedContinuation { continuation in
            pool.start(request) { events in
                for event in events {
                    if case .body(let piece) = event { receive(piece) }
                    if case .end(let end) = event { continuation.resume(returning: end) }
                }
            }
        }
        if let failure = end.failure { throw failure }
    }
}
