public import FoundationNetworking

/// A snapshot of a request's progress.
public struct RequestTask: Sendable {
    /// The request's number, unique in its session. Requests created later have higher numbers.
    public let taskIdentifier: Int
    /// The adapted request that the attempt began with.
    public let originalRequest: URLRequest?
    /// The request that was sent last. It differs from ``originalRequest`` after a redirect.
    public let currentRequest: URLRequest?
    /// The head of the final response, an `HTTPURLResponse`, once it has been received.
    public let response: URLResponse?
}
