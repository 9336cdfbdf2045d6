internal import Foundation

/// A request to the control API.
struct ServiceRequest: Sendable {
    /// The maximum time of a call that reads or writes the whole store, perhaps gigabytes on a slow SD card: 24 hours.
    static let longestCall: Duration = .seconds(86_400)

    let method: String
    /// The path and query.
    let target: String
    var body: Data?
    var contentType: String?
    /// The maximum time without any data from the service. May be exceeded by up to 2 s.
    var timeout: Duration
    /// The maximum time of the whole call.
    var totalTimeout: Duration = ServiceRequest.longestCall
    /// Whether the request may reach the service twice, because it changes nothing or the service recognizes a second
    /// copy.
    var isRepeatable = false
    /// How long to retry while the service is busy; `nil` for the default of the client.
    var busyLimit: Duration?
}

/// A response of the control API, including error responses.
struct ServiceResponse: Sendable {
    let status: Int
    let body: Data
    /// How long to wait before the next try, if the service states it (`Retry-After`).
    var retryAfter: Duration?
}

/// Sends requests to the control API, either of the service or of this process.
protocol ServiceTransport: Sendable {
    /// The name of the service or the queue, for messages.
    var name: String { get }

    /// How to start the service, for requests that only the service can handle.
    var startHint: String { get }

    /// - Throws: The reason why there is no response. An error response does not throw.
    func response(to request: ServiceRequest) async throws(CommandError) -> ServiceResponse

    /// Sends a request whose response does not end by itself, and passes its body to a closure as it arrives.
    ///
    /// - Returns: The response with the first 64 KiB of its body, when the service has ended it.
    /// - Throws: The reason why there is no response.
    func stream(
        _ request: ServiceRequest,
        to receive: @escaping @Sendable (Data) -> Void
    ) async throws(CommandError) -> ServiceResponse
}

extension ServiceTransport {
    /// Without the service nothing changes the queue, so there are no events to stream.
    func stream(
        _ request: ServiceRequest,
        to receive: @escaping @Sendable (Data) -> Void
    ) async throws(CommandError) -> ServiceResponse {
        try await response(to: request)
    }
}
