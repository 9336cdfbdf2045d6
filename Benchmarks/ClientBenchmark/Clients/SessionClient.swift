internal import ClientCore
internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import Synchronization

/// netwatch's session API, as a program uses it.
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
