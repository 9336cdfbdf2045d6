internal import ClientCore
internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import Synchronization

/// netwatch's `SessionManager`, with handlers for small requests.
struct SessionClient: Client {
    static let name = "session"

    private let manager: SessionManager
    private let queue = DispatchQueue(label: "benchmark")

    init(connections: Int) {
        let configuration = URLSessionConfiguration.default
        configuration.httpAdditionalHeaders = SessionManager.defaultHTTPHeaders
        configuration.httpMaximumConnectionsPerHost = connections
        manager = SessionManager(configuration: configuration)
    }

    func get(_ url: String, _ completion: @escaping @Sendable (Bool) -> Void) {
        manager.request(url).responseData(queue: queue) { response in
            completion(response.value?.isEmpty == false)
        }
    }

    /// Does the same as ``get(_:_:)``, but awaits the response.
    fileprivate func isAnswered(_ url: String) async -> Bool {
        await manager.request(url).responseData().value?.isEmpty == false
    }

    func download(_ url: String) async throws -> Int {
        let bytes = Atomic(0)
        let response = await manager.request(url)
            .stream { bytes.wrappingAdd($0.count, ordering: .relaxed) }
            .response()
        if let error = response.error { throw error }
        return bytes.load(ordering: .relaxed)
    }

    func save(_ url: String, to path: String) async throws -> Int {
        let response = await manager.download(url) { _, _ in
            (URL(fileURLWithPath: path), .removePreviousFile)
        }.response()
        if let error = response.error { throw error }
        return try length(ofFile: path)
    }

    func upload(_ path: String, to url: String) async throws {
        let response = await manager.upload(URL(fileURLWithPath: path), to: url, method: .put).response()
        if let error = response.error { throw error }
        guard response.response?.statusCode == 200 else { throw Unanswered() }
    }
}

/// netwatch's `SessionManager`, with `await` instead of handlers for small requests.
struct AwaitingClient: Client {
    static let name = "awaiting"

    private let session: SessionClient

    init(connections: Int) {
        session = SessionClient(connections: connections)
    }

    func get(_ url: String, _ completion: @escaping @Sendable (Bool) -> Void) {
        Task { completion(await session.isAnswered(url)) }
    }

    func download(_ url: String) async throws -> Int { try await session.download(url) }

    func save(_ url: String, to path: String) async throws -> Int { try await session.save(url, to: path) }

    func upload(_ path: String, to url: String) async throws { try await session.upload(path, to: url) }
}
