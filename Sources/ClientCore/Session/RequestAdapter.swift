public import FoundationNetworking

/// A type that changes requests before they are sent.
///
/// ```swift
/// struct TokenAdapter: RequestAdapter {
///     let token: String
///
///     func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
///         var urlRequest = urlRequest
///         urlRequest.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
///         return urlRequest
///     }
/// }
///
/// session.adapter = TokenAdapter(token: token)
/// ```
///
/// A session has at most one adapter, ``SessionManager/adapter``. For the first attempt it is called on the thread that
/// creates the request, before `request(...)` returns. For each retry it is called again, on the request's own queue.
///
/// It is called once for each attempt, before the first request, and not for redirects. If a header field is added to
/// the request after its creation and before its start (an idempotency key of the queue, for example), the adapter is
/// called again for the first attempt, on the request's own queue.
///
/// The header fields that the adapter adds are fields of the request: a redirect to another origin keeps them, except
/// the fields with credentials that <doc:Authentication> lists.
@preconcurrency public protocol RequestAdapter: Sendable {
    /// Returns the request to send.
    ///
    /// - Parameter urlRequest: The request as it was created, with the header fields that were added before its start.
    ///   This is the same for each attempt, never the adapted request of the previous attempt.
    /// - Throws: Any error. The attempt fails with this error. In the first attempt, the retrier is called with it. In
    ///   a retry, the error ends the request.
    func adapt(_ urlRequest: URLRequest) throws -> URLRequest
}
