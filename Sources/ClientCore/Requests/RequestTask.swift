public import FoundationNetworking

/// A snapshot of a request: its number, what was sent, and the response.
public struct RequestTask: Sendable {
    /// The request's number, unique in its session. Requests created later have higher numbers.
    public let taskIdentifier: Int
    /// The request that the attempt began with, after adapters have changed it.
    public let originalRequest: URLRequest?
    /// The request that was sent last. It differs from ``originalRequest`` after a redirect.
    public let currentRequest: URLRequest?
    /// The head of the final response, an `HTTPURLResponse`; `nil` until it has arrived.
    public let response: URLResponse?
}
