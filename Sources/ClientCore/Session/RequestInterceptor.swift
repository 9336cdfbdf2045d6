public import Foundation
public import FoundationNetworking

/// The decision about a failed request.
public enum RetryResult: Sendable {
    /// Retry immediately.
    case retry
    /// Retry after a delay in seconds. A delay below zero means immediately.
    case retryWithDelay(TimeInterval)
    /// Do not retry. The failure stands.
    case doNotRetry
    /// Do not retry, and fail with another error.
    case doNotRetryWithError(any Error)
}

/// Adapts and retries requests asynchronously.
///
/// A session has at most one interceptor, ``SessionManager/interceptor``. It runs after ``SessionManager/adapter``.
/// It is asked only about failures that ``SessionManager/retrier`` does not retry. Its functions run in a task
/// that is cancelled with the request.
///
/// Neither function has a default implementation. A conformance with another library's signatures therefore
/// fails to compile, instead of being silently ignored.
public protocol RequestInterceptor: Sendable {
    /// Returns the request to send, changed or unchanged. Called before each attempt.
    ///
    /// - Throws: Any error. The attempt fails with it.
    func adapt(_ urlRequest: URLRequest, for session: SessionManager) async throws -> URLRequest

    /// Decides about a failed attempt. With ``RetryResult/doNotRetry`` the failure stands.
    func retry(_ request: Request, for session: SessionManager, dueTo error: any Error) async -> RetryResult
}

/// An interceptor that retries without the session. If it retained the session while it waits, a release of the
/// session would not be noticed.
protocol SessionIndependentInterceptor: RequestInterceptor {
    /// Decides about a failed attempt.
    ///
    /// - Parameter paths: The paths of the request's session.
    func retry(_ request: Request, _ paths: SessionPaths, dueTo error: any Error) async -> RetryResult
}
