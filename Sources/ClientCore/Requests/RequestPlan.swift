internal import Foundation
internal import FoundationNetworking

/// What a request is to be, before anything is done for it.
struct RequestPlan: Sendable {
    /// As the caller made it: what further attempts are adapted from.
    var original: Result<URLRequest, any Error>
    /// What was said of it beside the request.
    var options = RequestOptions()
    /// What is sent in place of the request's own body.
    var upload: UploadBody?
    var policy = TransferPolicy()
    /// Makes what takes the response, once for the request; `nil` keeps it in memory.
    var makeSink: (@Sendable () -> any ResponseSink)?

    init(original: Result<URLRequest, any Error>) {
        self.original = original
    }

    init(_ request: any URLRequestConvertible) {
        original = Result { try request.asURLRequest() }
        options = (request as? OptionedRequest)?.options ?? RequestOptions()
    }

    /// - Parameter maximumDataBytes: How many bytes may be kept in memory.
    func sink(_ maximumDataBytes: Int) -> any ResponseSink {
        makeSink?() ?? DataSink(maximumBytes: maximumDataBytes)
    }
}

/// How far a request does what its session does by itself.
struct TransferPolicy: Sendable {
    /// Whether redirects are followed and challenges answered.
    var followsRedirects = true
    /// Whether anybody is asked about a failure: retriers, and who may take the request over. Adapters run all
    /// the same.
    var asksRetrier = true
    /// How many bytes of body the response may have; `nil` is any number.
    var maximumResponseBytes: Int?
    /// How long an attempt may take; `nil` is as long as the session says.
    var totalTimeout: Duration?
    /// How long connecting may take; `nil` is as long as the session says.
    var connectTimeout: Duration?
    /// How long the server may be silent after the request was sent; `nil` is as long as the session lets anything be.
    var responseTimeout: Duration?
    /// How long the response may take after its head; `nil` is for ever.
    var bodyTimeout: Duration?
    /// Whether a pooled connection may be used, on which libcurl may send a request twice; `nil` is for methods and
    /// headers to say.
    var allowsConnectionReuse: Bool?
    /// Whether libcurl may send the request again when a reused connection ends before the response.
    var allowsResending = true
}
