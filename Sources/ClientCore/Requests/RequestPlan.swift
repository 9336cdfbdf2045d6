internal import Foundation
internal import FoundationNetworking

/// The description of a request before any work is done for it.
struct RequestPlan: Sendable {
    /// The request as the caller created it. Each further attempt adapts it again.
    var original: Result<URLRequest, any Error>
    /// The options given for the request.
    var options = RequestOptions()
    /// The body that replaces the request's own.
    var upload: UploadBody?
    var policy = TransferPolicy()
    /// Creates the sink of the response, once per request; `nil` keeps the response in memory.
    var makeSink: (@Sendable () -> any ResponseSink)?

    init(original: Result<URLRequest, any Error>) {
        self.original = original
    }

    init(_ request: any URLRequestConvertible) {
        original = Result { try request.asURLRequest() }
        options = (request as? OptionedRequest)?.options ?? RequestOptions()
    }

    /// - Parameter maximumDataBytes: The maximum number of body bytes kept in memory.
    func sink(_ maximumDataBytes: Int) -> any ResponseSink {
        makeSink?() ?? DataSink(maximumBytes: maximumDataBytes)
    }
}

/// What a request does without being asked, and its limits.
struct TransferPolicy: Sendable {
    /// Whether redirects are followed and challenges are answered.
    var followsRedirects = true
    /// Whether retriers and failed-request owners are asked about a failure. Adapters run in any case.
    var asksRetrier = true
    /// The maximum number of body bytes of the response; `nil` for no limit.
    var maximumResponseBytes: Int?
    /// The time limit of an attempt; `nil` uses the session's.
    var totalTimeout: Duration?
    /// The time limit for connecting; `nil` uses the session's.
    var connectTimeout: Duration?
    /// The time that the server may stay silent after the request was sent; `nil` uses the session's idle
    /// timeout.
    var responseTimeout: Duration?
    /// The time that the response may take after its head; `nil` for no limit.
    var bodyTimeout: Duration?
    /// Whether a pooled connection may be used, on which libcurl may send a request twice; `nil` decides by
    /// method and header fields.
    var allowsConnectionReuse: Bool?
    /// Whether libcurl may send the request again when a reused connection ends before the response starts.
    var allowsResending = true
}
