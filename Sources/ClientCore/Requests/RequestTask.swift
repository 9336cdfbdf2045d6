public import FoundationNetworking

/// A snapshot of a request: its number, its state, what was sent, and the response.
public struct RequestTask: Sendable {
    /// The request's number, unique in its session. Requests created later have higher numbers.
    public let taskIdentifier: Int
    /// The state of the request in URLSession's terms; see ``Request/state-swift.property`` for netwatch's own.
    public let state: URLSessionTask.State
    /// The request that the attempt began with, after adapters have changed it.
    public let originalRequest: URLRequest?
    /// The request that was sent last. It differs from ``originalRequest`` after a redirect.
    public let currentRequest: URLRequest?
    /// The head of the final response, an `HTTPURLResponse`; `nil` until it has arrived.
    public let response: URLResponse?
}

extension RequestTask: CustomStringConvertible {
    /// The request's number, its method, and its URL without secrets, for example `1: GET https://example.com/`.
    public var description: String {
        "\(taskIdentifier): \((currentRequest ?? originalRequest)?.methodAndURL ?? "no request")"
    }
}

extension URLSessionTask.State {
    /// A request that was not started counts as suspended, and one that a queue has stored as running.
    init(_ state: Request.State) {
        self =
            switch state {
            case .initialized, .suspended: .suspended
            case .resumed, .queued: .running
            case .cancelled: .canceling
            case .finished: .completed
            }
    }
}
