public import Foundation
public import FoundationNetworking

/// Observes the requests of a session, for logs and statistics. It cannot change them.
///
/// By default every function does nothing. Functions are called on the request's own queue, one at a time per
/// request and in the order of the events. They block the request while they run.
public protocol EventMonitor: Sendable {
    /// A request is sent for the first time, for a retry, or after a redirect.
    func request(_ request: Request, willSend urlRequest: URLRequest)
    /// The head of a response has arrived, including that of a redirect.
    func request(_ request: Request, didReceive response: HTTPURLResponse)
    /// A redirect is followed.
    func request(_ request: Request, willFollow response: HTTPURLResponse, to urlRequest: URLRequest)
    /// An attempt has ended. `error` is `nil` if the response is complete; it has not been validated yet.
    func request(_ request: Request, didEndAttempt attempt: Int, error: (any Error)?)
    /// The request is retried after `delay` seconds.
    func request(_ request: Request, willRetryAfter delay: TimeInterval, dueTo error: any Error)
    /// The request was resumed.
    func requestDidResume(_ request: Request)
    /// The request was suspended.
    func requestDidSuspend(_ request: Request)
    /// The program cancelled the request.
    func requestDidCancel(_ request: Request)
    /// The request has finished. Its handlers are called next.
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
