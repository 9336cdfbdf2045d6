public import Foundation

/// The closure to which a ``RequestRetrier`` passes its decision: whether the request is retried, and after how many
/// seconds.
///
/// Call the closure exactly once, on any thread. Later calls are ignored. A delay below zero counts as zero.
public typealias RequestRetryCompletion = @Sendable (_ shouldRetry: Bool, _ timeDelay: TimeInterval) -> Void

/// A type that decides whether failed requests are retried.
///
/// ```swift
/// struct ThreeRetries: RequestRetrier {
///     func should(
///         _ manager: SessionManager, retry request: Request, with error: any Error,
///         completion: @escaping RequestRetryCompletion
///     ) {
///         completion(request.retryCount < 3, 1)
///     }
/// }
///
/// session.retrier = ThreeRetries()
/// ```
///
/// A session has at most one retrier, ``SessionManager/retrier``. It is called for each failed attempt, including
/// attempts whose validation failed. The call runs on the request's own queue. It is not called for a cancelled
/// request, nor for a retry that failed because its adapter threw.
///
/// For a retry, the adapter is called again, but `asURLRequest()` of the ``URLRequestConvertible`` is not.
@preconcurrency public protocol RequestRetrier: Sendable {
    /// Decides whether a failed request is retried. The decision may be made after this function has returned.
    ///
    /// - Parameters:
    ///   - manager: The session of the request.
    ///   - request: The request. ``Request/retryCount`` is the number of its retries so far.
    ///   - error: The error of the attempt.
    ///   - completion: Receives the decision. The request waits for it, unless the request is cancelled or
    ///     `completion` is released.
    func should(
        _ manager: SessionManager,
        retry request: Request,
        with error: any Error,
        completion: @escaping RequestRetryCompletion
    )
}
