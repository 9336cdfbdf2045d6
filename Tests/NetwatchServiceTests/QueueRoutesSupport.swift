internal import Foundation
internal import NIOHTTP1
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

extension ScratchDirectory {
    /// Opens a queue without starting it, so that it sends nothing.
    func openQueue() async throws -> OfflineQueue {
        var configuration = OfflineQueue.Configuration(directory: file("state"))
        // The credentials can be read at once, but on a busy machine their tasks may start late.
        (configuration.credentialWait, configuration.credentialTimeout) = (.seconds(300), .seconds(600))
        return try await OfflineQueue(configuration: configuration)
    }
}

/// The member `url` of a request to a port at which no server listens.
let urlMember = #""url":"http://127.0.0.1:1/""#

/// The response of a route, a JSON object.
struct RouteResponse {
    let status: UInt
    let members: [String: Any]

    var code: String? { members["code"] as? String }
    var detail: String { members["detail"] as? String ?? "" }
}

extension OfflineQueue {
    /// Returns the response of the queue's routes to a request.
    /// The options in the details of a request.
    nonisolated func options(of id: String) async throws -> [String: Any] {
        try await respond(.GET, "/v1/requests/\(id)").members["options"] as? [String: Any] ?? [:]
    }

    nonisolated func respond(
        _ method: HTTPMethod,
        _ target: String,
        _ body: String = "",
        defaults: RequestDefaults = RequestDefaults()
    ) async throws -> RouteResponse {
        let request = ControlRequest(
            method: method,
            target: try #require(RequestTarget(target)),
            body: Array(body.utf8),
            peer: PeerCredentials(pid: 1, uid: 0, gid: 0)
        )
        let routes = QueueRoutes(queue: self, isRunning: true, defaults: defaults)
        let response = await routes.router.respond(to: request)
        let object = try JSONSerialization.jsonObject(with: Data(response.body))
        return RouteResponse(
            status: response.status.code,
            members: try #require(object as? [String: Any])
        )
    }
}
