internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTransport

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

/// The limits of a request, and the steps that it may take by itself, such as following redirects.
struct TransferPolicy: Sendable {
    /// Whether redirects are followed and challenges are answered.
    var followsRedirects = true
    /// Whether a failure is passed to retriers and to owners of failed requests.
    var asksRetrier = true
    /// Whether the request has been adapted already, so that the adapter and the interceptor are not called for it.
    var isAdapted = false
    /// The maximum number of body bytes of the response; `nil` for no limit.
    var maximumResponseBytes: Int?
    /// The total timeout. `nil`: the total timeout of the request's options or of the session applies.
    var totalTimeout: Duration?
    /// The time limit for connecting. `nil`: the limit of the request's options or of the session applies.
    var connectTimeout: Duration?
    /// The time that the server may stay silent after the request was sent. `nil`: only the idle timeout applies.
    var responseTimeout: Duration?
    /// The time limit for the response's body, counted from its head; `nil` for no limit.
    var bodyTimeout: Duration?
    /// Whether the request may use a pooled connection, on which libcurl may send a request twice. `nil`: the method
    /// and the header fields decide.
    var allowsConnectionReuse: Bool?
    /// Whether libcurl may send the request again when a reused connection ends before the response starts.
    var allowsResending = true
    /// The interface and source address of the connection; `nil` if the kernel chooses them. A request with a binding
    /// neither uses nor leaves a pooled connection.
    var binding: SocketBinding?
    /// Decides whether a transfer may connect to an origin. It is called before each hop, with the URL that is sent:
    /// after adapters, redirects and challenges. `nil` permits every origin.
    var permitsOrigin: (@Sendable (TransferOrigin) -> Bool)?
    /// The client's certificate and key. `nil`: the session's client identity for the host is used.
    var identity: ClientIdentity?

    /// - Throws: ``OriginNotPermitted``, or `TransferFailure` if the URL cannot be parsed.
    func checkOrigin(of transfer: TransferRequest) throws {
        guard let permitsOrigin else { return }
        let origin = try TransferOrigin(url: transfer.url)
        guard permitsOrigin(origin) else { throw OriginNotPermitted(origin: origin) }
    }
}
