internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// The outcome of a request, as its handlers receive it.
struct RequestOutcome: Sendable {
    /// The first request that the last attempt sent.
    var request: URLRequest?
    var head: ResponseHead?
    var body = ResponseBody()
    var error: (any Error)?
    var clock = RequestClock()
    var metrics: LazyValue<RequestMetrics?>?

    var response: HTTPURLResponse? { head?.response }
}

/// The body of a response, in memory or in a file.
struct ResponseBody: Sendable {
    /// The body in memory, as far as it was received.
    var data: Data?
    /// The file that the body was written to.
    var temporaryURL: URL?
    /// The file's final location.
    var destinationURL: URL?
    /// Data that resumes the download.
    var resumeData: Data?
}
