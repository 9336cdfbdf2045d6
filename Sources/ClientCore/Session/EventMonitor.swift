public import Foundation
public import FoundationNetworking

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
