public import FoundationNetworking

/// Changes requests before they are sent.
///
/// A session has at most one adapter, ``SessionManager/adapter``. It is called on the thread that creates the
/// request, before `request(...)` returns. Before each further attempt it is called again, on the request's own
/// queue.
@preconcurrency public protocol RequestAdapter: Sendable {
    /// Returns the request to send.
    ///
    /// - Parameter urlRequest: The request as it was created. A further attempt gets the same request again,
    ///   not the adapted one of the previous attempt.
    /// - Throws: Any error. The attempt fails with it, and the retrier may be asked about it.
    func adapt(_ urlRequest: URLRequest) throws -> URLRequest
}
