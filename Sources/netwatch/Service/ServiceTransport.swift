internal import Foundation

/// A request to the control API.
struct ServiceRequest: Sendable {
    let method: String
    /// The path and query.
    let target: String
    var body: Data?
    var contentType: String?
    /// How long the response may take.
    var timeout: Duration
    /// Whether the service may receive the request twice, because it changes nothing or a second copy is recognised.
    var isRepeatable = false
    /// How long to retry while the service is busy; `nil` for the client's default.
    var busyLimit: Duration?
}

/// A response of the control API, including error responses.
struct ServiceResponse: Sendable {
    let status: Int
    let body: Data
    /// When to try again, if the service states it (`Retry-After`).
    var retryAfter: Duration?
}

/// Sends requests to the control API: to the service, or to this process itself.
protocol ServiceTransport: Sendable {
    /// The name of the peer, for messages.
    var name: String { get }

    /// - Throws: The reason why there is no response. An error response does not throw.
    func response(to request: ServiceRequest) async throws(CommandError) -> ServiceResponse
}
