internal import Foundation
internal import NetwatchService

/// Handles requests in this process, with the service's own routes on the queue's directory. Nothing is sent to
/// servers.
struct StoreTransport: ServiceTransport {
    let directory: String
    let queue: StoredQueue

    var name: String { "the queue in `\(directory)`" }
    var startHint: String { SystemUnit.startHint(stateDirectory: directory) }

    func response(to request: ServiceRequest) async -> ServiceResponse {
        let response = await queue.respond(
            request.method,
            request.target,
            body: request.body.map(Array.init) ?? []
        )
        return ServiceResponse(status: response.status, body: Data(response.body))
    }
}
