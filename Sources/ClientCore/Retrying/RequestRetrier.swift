public import Foundation

/// Answers whether a request that failed is tried again, and after how many seconds.
///
/// It is to be called exactly once, on any thread; later calls do nothing. A delay below zero is none.
public typealias RequestRetryCompletion = @Sendable (_ shouldRetry: Bool, _ timeDelay: TimeInterval) -> Void

/// Decides whether requests that failed are tried again.
///
/// A session has at most one, ``SessionManager/retrier``. It is asked about each attempt that failed, after
/// the validators, on a thread of the request's own, but not about a request that was cancelled. Requests
/// that are tried again are made from scratch: the adapter runs, the `URLRequestConvertible` does not.
@preconcurrency public protocol RequestRetrier: Sendable {
    /// Decides, at once or later.
    ///
    /// - Parameters:
    ///   - manager: The session of the request.
    ///   - request: The request. ``Request/retryCount`` says how often it was tried again.
    ///   - error: Why the attempt failed.
    ///   - completion: Takes the decision. Until it is called the request does not end, unless it is cancelled.
    func should(
        _ manager: SessionManager,
        retry request: Request,
        with error: any Error,
        completion: @escaping RequestRetryCompletion
    )
}
