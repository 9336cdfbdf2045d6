public import Foundation
public import FoundationNetworking

/// What becomes of a request that failed.
public enum RetryResult: Sendable {
    /// It is tried again at once.
    case retry
    /// It is tried again after so many seconds; below zero is at once.
    case retryWithDelay(TimeInterval)
    /// Its failure stands.
    case doNotRetry
    /// It fails with another error.
    case doNotRetryWithError(any Error)
}

/// Adapts and retries requests by asynchronous work.
///
/// A session has at most one, ``SessionManager/interceptor``. It comes after ``SessionManager/adapter``, and
/// is asked only about failures that ``SessionManager/retrier`` does not want to retry. Neither function has a
/// default: a conformance written for another library's signatures is to be an error, not silence. Its functions run in a
/// task that is cancelled with the request.
public protocol RequestInterceptor: Sendable {
    /// Changes a request before each attempt, or returns it as it is.
    ///
    /// - Throws: Anything; it is the attempt's failure.
    func adapt(_ urlRequest: URLRequest, for session: SessionManager) async throws -> URLRequest

    /// Decides what becomes of a failed attempt; ``RetryResult/doNotRetry`` lets its failure stand.
    func retry(_ request: Request, for session: SessionManager, dueTo error: any Error) async -> RetryResult
}
