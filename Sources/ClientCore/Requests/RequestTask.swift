public import FoundationNetworking

/// What can be seen of a request's work at one moment.
public struct RequestTask: Sendable {
    /// The request's number: unique in its session, and higher for requests that were made later.
    public let taskIdentifier: Int
    /// The request that the attempt began with, adapted.
    public let originalRequest: URLRequest?
    /// The request that was sent last, another one than ``originalRequest`` after a redirect.
    public let currentRequest: URLRequest?
    /// The head of the final response, an `HTTPURLResponse`, once it has come.
    public let response: URLResponse?
}
