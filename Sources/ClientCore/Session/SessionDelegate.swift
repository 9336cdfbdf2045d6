public import Foundation
public import FoundationNetworking
internal import Synchronization

/// Makes decisions for a session. Each decision is a closure; by default all are `nil`.
///
/// Closures are called on the queue of their request and block that request while they run. Set them before
/// creating the requests they apply to: a running request reads a closure only when it needs it. To
/// observe events without deciding anything, use an ``EventMonitor``.
public final class SessionDelegate: Sendable {
    /// Decides about a redirect. Returns the request to send next, by default `newRequest`, or `nil` to use the
    /// redirect itself as the response.
    public typealias Redirection =
        @Sendable (
            _ session: SessionManager, _ task: RequestTask, _ response: HTTPURLResponse,
            _ newRequest: URLRequest
        ) -> URLRequest?

    /// Answers an authentication challenge (401) if the request has no credentials.
    public typealias ChallengeAnswer =
        @Sendable (
            _ session: SessionManager, _ task: RequestTask, _ challenge: AuthenticationChallenge
        ) -> (AuthChallengeDisposition, URLCredential?)

    /// Decides whether to receive the body of a response.
    public typealias ResponseAnswer =
        @Sendable (
            _ session: SessionManager, _ task: RequestTask, _ response: HTTPURLResponse
        ) -> ResponseDisposition

    /// Called when a task has ended, with or without an error.
    public typealias Completion =
        @Sendable (_ session: SessionManager, _ task: RequestTask, _ error: (any Error)?) -> Void

    /// Returns the body again as a new stream, because the previous one was already read.
    public typealias BodyStream =
        @Sendable (_ session: SessionManager, _ task: RequestTask) -> InputStream?

    private struct Closures: Sendable {
        var redirection: Redirection?
        var challenge: ChallengeAnswer?
        var response: ResponseAnswer?
        var bodyStream: BodyStream?
        var completion: Completion?
    }

    private let closures = Mutex(Closures())
    /// Whether any closure was ever set. Every request checks several times, and few sessions have a closure.
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

    /// Decides where a redirect leads. Default: the response's `Location`, with at most 16 redirects per
    /// attempt.
    @preconcurrency
    public var taskWillPerformHTTPRedirection: Redirection? {
        get { read { $0.redirection } }
        set { change { $0.redirection = newValue } }
    }

    /// Answers authentication challenges. Default: the response with the challenge is the request's response.
    ///
    /// Not called if the request has credentials from ``Request/authenticate(usingCredential:)``. Called at most
    /// once per attempt. If the server rejects the credentials, its second 401 becomes the response.
    @preconcurrency
    public var taskDidReceiveChallenge: ChallengeAnswer? {
        get { read { $0.challenge } }
        set { change { $0.challenge = newValue } }
    }

    /// Decides, when the final head of a response has arrived, whether to receive its body. Default: yes.
    @preconcurrency
    public var dataTaskDidReceiveResponse: ResponseAnswer? {
        get { read { $0.response } }
        set { change { $0.response = newValue } }
    }

    /// Returns a new stream when a request with a stream body must be sent again, for a retry or after a
    /// redirect that keeps the body. Without a closure, or if it returns `nil`, the request fails with
    /// `URLError.requestBodyStreamExhausted`.
    ///
    /// Not called during an authentication challenge, which libcurl answers itself.
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

/// A server's authentication challenge.
public struct AuthenticationChallenge: Sendable {
    /// The host and port, and the realm and method of the first challenge in the response.
    public let protectionSpace: URLProtectionSpace
    /// The response with the challenge.
    public let failureResponse: HTTPURLResponse
}

/// How to handle an authentication challenge.
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

/// Whether to receive the body of a response.
public enum ResponseDisposition: Sendable {
    /// Receives the body.
    case allow
    /// Ends the request with `URLError.cancelled`.
    case cancel
}
