internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// The results of a request, from which the responses for its handlers are created.
struct RequestOutcome: Sendable {
    /// The adapted request of the last attempt, before any redirect.
    var request: URLRequest?
    var head: ResponseHead?
    var body = ResponseBody()
    var error: (any Error)?
    var clock = RequestClock()
    var metrics: LazyMetrics?

    var response: HTTPURLResponse? { head?.response }
}

/// The body of a response, in memory or in a file.
struct ResponseBody: Sendable {
    /// The body in memory, as far as it was received.
    var data: Data?
    /// The file that the body was written to.
    var temporaryURL: URL?
    /// The file's final location, even if moving it there failed.
    var destinationURL: URL?
    /// The resume data, with which the download can be continued later.
    var resumeData: Data?

    /// The file at its current location.
    var file: URL? { destinationURL ?? temporaryURL }

    /// Returns the body as serializers receive it: the data, or the file.
    func content<Content>(as type: Content.Type) -> Content? { data as? Content ?? file as? Content }
}
