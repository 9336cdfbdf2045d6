internal import Foundation
internal import FoundationNetworking

/// The description of a request before any work is done for it.
struct RequestPlan: Sendable {
    /// The request as the caller created it, or the error that prevented it. Each attempt adapts this request again.
    var original: Result<URLRequest, any Error>
    /// The options given for the request.
    var options = RequestOptions()
    /// The body that replaces the request's own; `nil` if the request is not an upload.
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
