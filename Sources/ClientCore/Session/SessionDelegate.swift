public import Foundation
public import FoundationNetworking
internal import Synchronization

/// Takes decisions in a session's place, each by a closure that is `nil` by default.
///
/// Closures are called on the queue of the request they concern and delay it for as long as they take. Set
/// them before the requests they are for: one that is under way asks those that are set at that moment. To
/// hear of events without deciding anything, use an ``EventMonitor``.
public final class SessionDelegate: Sendable {
    /// Answers a redirect: with the request to send next, which is `newRequest` by default, or with `nil` to
    /// have the redirect itself as the response.
    public typealias Redirection =
        @Sendable (
            _ session: SessionManager, _ task: RequestTask, _ response: HTTPURLResponse,
            _ newRequest: URLRequest
        ) -> URLRequest?

    /// Answers a challenge for credentials (401) for which the request has none of its own.
    public typealias ChallengeAnswer =
        @Sendable (
            _ session: SessionManager, _ task: RequestTask, _ challenge: AuthenticationChallenge
        ) -> (AuthChallengeDisposition, URLCredential?)

    /// Says whether the body of a response is wanted.
    public typealias ResponseAnswer =
        @Sendable (
            _ session: SessionManager, _ task: RequestTask, _ response: HTTPURLResponse
        ) -> ResponseDisposition

    /// Hears that a task has ended, with or without an error.
    public typealias Completion =
        @Sendable (_ session: SessionManager, _ task: RequestTask, _ error: (any Error)?) -> Void

    /// Gives the body once more, in place of a stream that was read.
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
    /// Whether any was ever set: every request asks several times, and hardly a session has one.
    private let isUsed = Atomic(false)

    /// Makes a delegate that leaves everything as it is.
    public init() {}

    private func read<Closure>(_ closure: (Closures) -> Closure?) -> Closure? {
        isUsed.load(ordering: .acquiring) ? closures.withLock { closure($0) } : nil
    }

    private func change(_ change: (inout Closures) -> Void) {
        closures.withLock { change(&$0) }
        isUsed.store(true, ordering: .releasing)
    }

    /// Decides where a redirect leads. Default: the response's `Location`, at most 16 times for a request.
    @preconcurrency
    public var taskWillPerformHTTPRedirection: Redirection? {
        get { read { $0.redirection } }
        set { change { $0.redirection = newValue } }
    }

    /// Answers challenges for credentials. Default: the response with the challenge is the request's response.
    ///
    /// A request that was given credentials by ``Request/authenticate(usingCredential:)`` answers itself. Each
    /// request asks at most once; credentials that are refused end it with the server's second 401.
    @preconcurrency
    public var taskDidReceiveChallenge: ChallengeAnswer? {
        get { read { $0.challenge } }
        set { change { $0.challenge = newValue } }
    }

    /// Says, when the final head of a response has come, whether its body is wanted. Default: it is.
    @preconcurrency
    public var dataTaskDidReceiveResponse: ResponseAnswer? {
        get { read { $0.response } }
        set { change { $0.response = newValue } }
    }

    /// Gives a new stream when a request whose body is a stream has to be sent again, by a retrier or after a
    /// redirect that keeps the body. Default, and for `nil`: the request fails with
    /// `URLError.requestBodyStreamExhausted`.
    ///
    /// It is not asked during a challenge for credentials, which libcurl answers by itself.
    @preconcurrency
    public var taskNeedNewBodyStream: BodyStream? {
        get { read { $0.bodyStream } }
        set { change { $0.bodyStream = newValue } }
    }

    /// Hears of the end of each attempt at a request, before validation.
    @preconcurrency
    public var taskDidComplete: Completion? {
        get { read { $0.completion } }
        set { change { $0.completion = newValue } }
    }
}

/// A server's challenge for credentials.
public struct AuthenticationChallenge: Sendable {
    /// What the credentials are for: host, port, realm and the strongest method that was offered.
    public let protectionSpace: URLProtectionSpace
    /// The response with the challenge.
    public let failureResponse: HTTPURLResponse
}

/// What to do about a challenge.
public enum AuthChallengeDisposition: Sendable {
    /// Send the request again with the credential; without one, as ``performDefaultHandling``.
    case useCredential
    /// Take the response with the challenge as the request's response.
    case performDefaultHandling
    /// End the request with `URLError.cancelled`.
    case cancelAuthenticationChallenge
    /// As ``performDefaultHandling``.
    case rejectProtectionSpace
}

/// Whether the body of a response is wanted.
public enum ResponseDisposition: Sendable {
    /// It is.
    case allow
    /// It is not: the request ends with `URLError.cancelled`.
    case cancel
}
