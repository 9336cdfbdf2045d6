internal import Foundation
internal import NetwatchService

/// Opens the queue's directory in this process. The service's own routes handle the requests, and nothing is sent.
struct StoreTransport: ServiceTransport {
    let directory: String
    let queue: StoredQueue

    var name: String { "the queue in `\(directory)`" }

    func response(to request: ServiceRequest) async -> ServiceResponse {
        let response = await queue.respond(
            request.method,
            request.target,
            body: request.body.map(Array.init) ?? []
        )
        return ServiceResponse(status: response.status, body: Data(response.body))
    }
}
