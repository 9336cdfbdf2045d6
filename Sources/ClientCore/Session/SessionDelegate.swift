public import Foundation
public import FoundationNetworking
internal import NetwatchEventLoop
internal import Synchronization

/// The closures that make decisions for a session. All are `nil` by default.
///
/// A closure is called on the queue of the request, and blocks this request while it runs. A request reads a closure
/// only when it needs the decision, so set closures before creating requests. To observe events without deciding
/// anything, use an ``EventMonitor``.
public final class SessionDelegate: Sendable {
    /// A closure that decides about a redirect. Returns the request to send next, usually `newRequest`, or `nil` to use
    /// the redirect itself as the response.
    public typealias Redirection =
        @Sendable (
            _ session: SessionManager, _ task: RequestTask, _ response: HTTPURLResponse,
            _ newRequest: URLRequest
        ) -> URLRequest?

    /// A closure that decides about a redirect by calling `completion` with the request to send next, or with `nil` to
    /// use the redirect itself as the response.
    public typealias RedirectionWithCompletion =
        @Sendable (
            _ session: SessionManager, _ task: RequestTask, _ response: HTTPURLResponse,
            _ newRequest: URLRequest, _ completion: @escaping @Sendable (URLRequest?) -> Void
        ) -> Void

    /// A closure that answers an authentication challenge (401) for a request without credentials.
    public typealias ChallengeAnswer =
        @Sendable (
            _ session: SessionManager, _ task: RequestTask, _ challenge: AuthenticationChallenge
        ) -> (AuthChallengeDisposition, URLCredential?)

    /// A closure that decides whether to receive the body of a response.
    public typealias ResponseAnswer =
        @Sendable (
            _ session: SessionManager, _ task: RequestTask, _ response: HTTPURLResponse
        ) -> ResponseDisposition

    /// A closure that decides whether to receive the body of a response by calling `completion`.
    public typealias ResponseAnswerWithCompletion =
        @Sendable (
            _ session: SessionManager, _ task: RequestTask, _ response: HTTPURLResponse,
            _ completion: @escaping @Sendable (ResponseDisposition) -> Void
        ) -> Void

    /// A closure that is called when an attempt has ended, with or without an error.
    public typealias Completion =
        @Sendable (_ session: SessionManager, _ task: RequestTask, _ error: (any Error)?) -> Void

    /// A closure that returns the body again as a new stream, because the previous stream was already read.
    public typealias BodyStream =
        @Sendable (_ session: SessionManager, _ task: RequestTask) -> InputStream?

    private struct Closures: Sendable {
        var redirection: Redirection?
        var laterRedirection: RedirectionWithCompletion?
        var challenge: ChallengeAnswer?
        var response: ResponseAnswer?
        var laterResponse: ResponseAnswerWithCompletion?
        var bodyStream: BodyStream?
        var completion: Completion?
    }

    private let closures = Lock(Closures())
    /// Whether any closure was ever set. Requests check this without a lock, because few sessions have a closure.
    private let isUsed = Atomic(false)

    /// Creates a delegate that changes nothing.
    public init() {}

    private func read<Closure>(_ closure: (Closures) -> Closure?) -> Closure? {
        isUsed.load(ordering: .acquiring) ? closures.withLock { closure($0) } : nil
    }

    private func change(_ change: (inout Closures) -> Void) {
        closures.withLock { change(&$0) }
        isUsed.store(true, ordering: .releasing)
    }

    /// Decides about each redirect. Default: the redirect to its `Location` is followed. An attempt that follows more
    /// than 16 redirects fails, with or without a closure.
    ///
    /// ```swift
    /// session.delegate.taskWillPerformHTTPRedirection = { _, _, response, newRequest in
    ///     newRequest.url?.host == response.url?.host ? newRequest : nil
    /// }
    /// ```
    @preconcurrency
    public var taskWillPerformHTTPRedirection: Redirection? {
        get { read { $0.redirection } }
        set { change { $0.redirection = newValue } }
    }

    /// Decides about each redirect asynchronously. If set, ``taskWillPerformHTTPRedirection`` is not called. The
    /// request waits until the closure calls its completion, on any thread. Only the first call counts. If the closure
    /// releases the completion without calling it, the redirect is followed.
    @preconcurrency
    public var taskWillPerformHTTPRedirectionWithCompletion: RedirectionWithCompletion? {
        get { read { $0.laterRedirection } }
        set { change { $0.laterRedirection = newValue } }
    }

    /// Answers authentication challenges. Default: none is answered, and the 401 becomes the request's response.
    ///
    /// Called at most once per attempt, and only if the request has no credentials from
    /// ``Request/authenticate(usingCredential:)``. If the server rejects the credentials, its second 401 becomes the
    /// response.
    @preconcurrency
    public var taskDidReceiveChallenge: ChallengeAnswer? {
        get { read { $0.challenge } }
        set { change { $0.challenge = newValue } }
    }

    /// Decides whether to receive the body of a response. Called when the head of the final response has arrived.
    /// Default: the body is received.
    @preconcurrency
    public var dataTaskDidReceiveResponse: ResponseAnswer? {
        get { read { $0.response } }
        set { change { $0.response = newValue } }
    }

    /// Decides asynchronously whether to receive the body of a response. If set, ``dataTaskDidReceiveResponse`` is not
    /// called. The request waits until the closure calls its completion, on any thread. Only the first call counts. If
    /// the closure releases the completion without calling it, the body is received.
    @preconcurrency
    public var dataTaskDidReceiveResponseWithCompletion: ResponseAnswerWithCompletion? {
        get { read { $0.laterResponse } }
        set { change { $0.laterResponse = newValue } }
    }

    /// Whether a closure is set that answers later.
    var answersLater: Bool {
        taskWillPerformHTTPRedirectionWithCompletion != nil || dataTaskDidReceiveResponseWithCompletion != nil
    }

    /// Returns a new stream when a request with a stream as its body must be sent again: for a retry, or after a
    /// redirect that keeps the body. Without a closure, or if the closure returns `nil`, the request fails with
    /// `URLError.requestBodyStreamExhausted`.
    ///
    /// Not called if libcurl sends the request again by itself, to answer an authentication challenge with credentials
    /// that were set in advance. The request then fails with the same error.
    @preconcurrency
    public var taskNeedNewBodyStream: BodyStream? {
        get { read { $0.bodyStream } }
        set { change { $0.bodyStream = newValue } }
    }

    /// Called at the end of each attempt, before validation.
    @preconcurrency
    public var taskDidComplete: Completion? {
        get { read { $0.completion } }
        set { change { $0.completion = newValue } }
    }
}

/// The authentication challenge in a response (401).
public struct AuthenticationChallenge: Sendable {
    /// The host and port of the server, and the realm and method of the first challenge in the response.
    public let protectionSpace: URLProtectionSpace
    /// The response with the challenge.
    public let failureResponse: HTTPURLResponse
}

/// The decision how to handle an authentication challenge.
public enum AuthChallengeDisposition: Sendable {
    /// Sends the request again with the credential. Without a credential, the same as ``performDefaultHandling``.
    case useCredential
    /// Uses the response with the challenge as the request's response.
    case performDefaultHandling
    /// Ends the request with `URLError.cancelled`.
    case cancelAuthenticationChallenge
    /// The same as ``performDefaultHandling``.
    case rejectProtectionSpace
}

/// The decision whether to receive the body of a response.
public enum ResponseDisposition: Sendable {
    /// Receives the body.
    case allow
    /// Ends the request with `URLError.cancelled`.
    case cancel
}
