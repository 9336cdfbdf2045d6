public import Foundation

/// Reports whether a failed request is retried, and after how many seconds.
///
/// Call it exactly once, on any thread; later calls are ignored. A delay below zero counts as zero.
public typealias RequestRetryCompletion = @Sendable (_ shouldRetry: Bool, _ timeDelay: TimeInterval) -> Void

/// Decides whether failed requests are retried.
///
/// A session has at most one retrier, ``SessionManager/retrier``. It is asked about each failed attempt after
/// validation, on the request's own queue. It is not asked about a cancelled request. For a retry the adapter
/// runs again, but the `URLRequestConvertible` does not.
@preconcurrency public protocol RequestRetrier: Sendable {
    /// Decides immediately or later.
    ///
    /// - Parameters:
    ///   - manager: The session of the request.
    ///   - request: The request. ``Request/retryCount`` is the number of its retries so far.
    ///   - error: The error of the attempt.
    ///   - completion: Receives the decision. Until it is called, the request does not end unless it is
    ///     cancelled.
    func should(
        _ manager: SessionManager,
        retry request: Request,
        with error: any Error,
        completion: @escaping RequestRetryCompletion
    )
}
