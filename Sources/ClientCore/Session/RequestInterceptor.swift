public import Foundation
public import FoundationNetworking

/// The decision whether a failed request is retried.
public enum RetryResult: Sendable {
    /// Retry immediately.
    case retry
    /// Retry after a delay in seconds. A delay below zero means immediately.
    case retryWithDelay(TimeInterval)
    /// Do not retry. The request fails with the error of the attempt.
    case doNotRetry
    /// Do not retry, and fail with another error.
    case doNotRetryWithError(any Error)
}

/// A type that adapts and retries requests asynchronously.
///
/// ```swift
/// struct OverloadInterceptor: RequestInterceptor {
///     func adapt(_ urlRequest: URLRequest, for session: SessionManager) async throws -> URLRequest {
///         urlRequest
///     }
///
///     /// Retries a request that failed the validation with the status 503.
///     func retry(_ request: Request, for session: SessionManager, dueTo error: any Error) async -> RetryResult {
///         (error as? AFError)?.responseCode == 503 && request.retryCount < 3 ? .retryWithDelay(2) : .doNotRetry
///     }
/// }
///
/// session.interceptor = OverloadInterceptor()
/// ```
///
/// A session has at most one interceptor, ``SessionManager/interceptor``. It adapts a request after
/// ``SessionManager/adapter``. Its `retry` function is called only if ``SessionManager/retrier`` does not retry the
/// request. The functions of the interceptor run in a task that is cancelled with the request.
///
/// Neither function has a default implementation. With default implementations, a type that has the signatures of
/// another library would compile, but its functions would never be called. Without them, it does not compile.
public protocol RequestInterceptor: Sendable {
    /// Returns the request to send, changed or unchanged. Called once before each attempt, and not for redirects; see
    /// ``RequestAdapter`` for the fields that a redirect keeps.
    ///
    /// - Throws: Any error. The attempt fails with this error. In a retry, the error ends the request.
    func adapt(_ urlRequest: URLRequest, for session: SessionManager) async throws -> URLRequest

    /// Decides whether a failed attempt is retried.
    func retry(_ request: Request, for session: SessionManager, dueTo error: any Error) async -> RetryResult
}

/// An interceptor whose decision does not need the session. It does not retain the session while it waits, so that the
/// program can end the session by releasing it.
protocol SessionIndependentInterceptor: RequestInterceptor {
    /// Decides whether a failed attempt is retried.
    ///
    /// - Parameter paths: The paths of the request's session.
    func retry(_ request: Request, _ paths: SessionPaths, dueTo error: any Error) async -> RetryResult
}
