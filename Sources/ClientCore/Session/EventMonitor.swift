public import Foundation
public import FoundationNetworking

/// Hears what happens to a session's requests, for logs and statistics. It changes nothing.
///
/// Every function does nothing by default. They are called on the request's own queue, one at a time for one
/// request and in the order in which things happened, and delay the request for as long as they take.
public protocol EventMonitor: Sendable {
    /// A request is sent: the first time, when it is tried again, or after a redirect.
    func request(_ request: Request, willSend urlRequest: URLRequest)
    /// The head of a response came, of a redirect too.
    func request(_ request: Request, didReceive response: HTTPURLResponse)
    /// A redirect is followed.
    func request(_ request: Request, willFollow response: HTTPURLResponse, to urlRequest: URLRequest)
    /// An attempt ended. `error` is `nil` when a whole response came; its validation is still to be.
    func request(_ request: Request, didEndAttempt attempt: Int, error: (any Error)?)
    /// The request is tried again after so many seconds.
    func request(_ request: Request, willRetryAfter delay: TimeInterval, dueTo error: any Error)
    /// The request was resumed.
    func requestDidResume(_ request: Request)
    /// The request was suspended.
    func requestDidSuspend(_ request: Request)
    /// The request was cancelled by its program.
    func requestDidCancel(_ request: Request)
    /// The request is over; its handlers come next.
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
