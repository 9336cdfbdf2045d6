public import Foundation
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

/// An observer of a session's requests, for logs and statistics. It cannot change the requests.
///
/// ```swift
/// struct RequestLog: EventMonitor {
///     func requestDidFinish(_ request: Request, error: (any Error)?) {
///         print(request.request?.url?.path ?? "", error?.localizedDescription ?? "done")
///     }
/// }
///
/// session.eventMonitors = [RequestLog()]
/// ```
///
/// Every function has a default implementation that does nothing. Functions are called on the request's own queue, one
/// at a time per request and in the order of the events. They block the request while they run.
public protocol EventMonitor: Sendable {
    /// Called before a request is sent: for the first time, for a retry, or after a redirect or a challenge.
    func request(_ request: Request, willSend urlRequest: URLRequest)
    /// Called when the head of a response has arrived, including the head of a redirect or a challenge.
    func request(_ request: Request, didReceive response: HTTPURLResponse)
    /// Called before a redirect is followed.
    func request(_ request: Request, willFollow response: HTTPURLResponse, to urlRequest: URLRequest)
    /// Called when an attempt has ended. `error` is `nil` if the response is complete. The response has not been
    /// validated yet.
    func request(_ request: Request, didEndAttempt attempt: Int, error: (any Error)?)
    /// Called when it was decided to retry the request after `delay` seconds.
    func request(_ request: Request, willRetryAfter delay: TimeInterval, dueTo error: any Error)
    /// Called when the request was started or resumed.
    func requestDidResume(_ request: Request)
    /// Called when the request was suspended.
    func requestDidSuspend(_ request: Request)
    /// Called when the program has cancelled the request.
    func requestDidCancel(_ request: Request)
    /// Called when the request has finished, before its handlers are called.
    func requestDidFinish(_ request: Request, error: (any Error)?)
}

extension EventMonitor {
    /// Does nothing.
    public func request(_ request: Request, willSend urlRequest: URLRequest) {}
    /// Does nothing.
    public func request(_ request: Request, didReceive response: HTTPURLResponse) {}
    /// Does nothing.
    public func request(
        _ request: Request,
        willFollow response: HTTPURLResponse,
        to urlRequest: URLRequest
    ) {}
    /// Does nothing.
    public func request(_ request: Request, didEndAttempt attempt: Int, error: (any Error)?) {}
    /// Does nothing.
    public func request(_ request: Request, willRetryAfter delay: TimeInterval, dueTo error: any Error) {}
    /// Does nothing.
    public func requestDidResume(_ request: Request) {}
    /// Does nothing.
    public func requestDidSuspend(_ request: Request) {}
    /// Does nothing.
    public func requestDidCancel(_ request: Request) {}
    /// Does nothing.
    public func requestDidFinish(_ request: Request, error: (any Error)?) {}
}
