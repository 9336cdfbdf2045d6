public import FoundationNetworking

/// Changes requests before they are sent.
///
/// A session has at most one, ``SessionManager/adapter``. It is called on the thread that makes the request,
/// before `request(...)` returns, and once more before each further attempt, on a thread of the request's own.
@preconcurrency public protocol RequestAdapter: Sendable {
    /// Changes a request.
    ///
    /// - Parameter urlRequest: The request as it was made; for a further attempt that one again, not what was
    ///   made of it for the attempt before.
    /// - Throws: Anything; it is the attempt's failure, which the retrier may be asked about.
    func adapt(_ urlRequest: URLRequest) throws -> URLRequest
}
