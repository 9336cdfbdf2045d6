internal import Foundation
internal import FoundationNetworking
package import NetwatchEventLoop
package import NetwatchTransport

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
package struct TransferPolicy: Sendable {
    /// Whether redirects are followed and challenges are answered.
    package var followsRedirects = true
    /// Whether a failure is passed to retriers and to owners of failed requests.
    package var asksRetrier = true
    /// Whether the request has been adapted already, so that the adapter and the interceptor are not called for it.
    package var isAdapted = false
    /// The maximum length of the response's body in bytes; `nil` for no limit. A longer body ends the request with
    /// `URLError.dataLengthExceedsMaximum`. The handlers receive the response and the first bytes of its body, up to
    /// this length, together with the error.
    package var maximumResponseBytes: Int?
    /// The total timeout. A request that takes longer ends with `URLError.timedOut`. `nil`: the total timeout of the
    /// request's options or of the session applies.
    package var totalTimeout: Duration?
    /// The time limit for the lookup, the connection and the TLS handshake together. `nil`: the limit of the
    /// request's options or of the session applies.
    package var connectTimeout: Duration?
    /// The time that the server may stay silent between the last byte of the request and the head of the response. `nil`: only the
    /// idle timeout applies.
    package var responseTimeout: Duration?
    /// The time limit for the response's body, counted from its head; `nil` for no limit.
    package var bodyTimeout: Duration?
    /// The version of HTTP. `nil`: the version of the request's options or of the session applies.
    package var httpVersion: HTTPVersion?
    /// Whether the request may use a pooled connection. If such a connection closes before the response starts, libcurl
    /// sends the request again by itself; see ``allowsResending``. `nil`: the method and the header fields decide.
    package var allowsConnectionReuse: Bool?
    /// Whether libcurl may send the request again when a reused connection closes before the response starts. If not,
    /// the request fails instead.
    package var allowsResending = true
    /// The interface and source address of the connection; `nil` if the kernel chooses them. A request with a binding
    /// neither uses nor leaves a pooled connection.
    package var binding: SocketBinding?
    /// Decides whether a transfer may connect to an origin. It is called before each hop, with the URL that is sent:
    /// after adapters, redirects and challenges. If it returns `false`, the request fails with ``OriginNotPermitted``.
    /// `nil` permits every origin.
    package var permitsOrigin: (@Sendable (TransferOrigin) -> Bool)?
    /// The client's certificate and key. `nil`: the session's client identity for the host is used.
    package var identity: ClientIdentity?

    /// Creates the policy of an ordinary request.
    init() {}

    /// Creates the policy of a request that consists of a single transfer: it follows no redirects, answers no
    /// challenges, and passes its failure to no retrier or owner of failed requests.
    ///
    /// The parameters set the properties of the same names.
    package static func singleTransfer(
        maximumResponseBytes: Int,
        totalTimeout: Duration,
        allowsConnectionReuse: Bool
    ) -> TransferPolicy {
        var policy = TransferPolicy()
        policy.followsRedirects = false
        policy.asksRetrier = false
        policy.maximumResponseBytes = maximumResponseBytes
        policy.totalTimeout = totalTimeout
        policy.allowsConnectionReuse = allowsConnectionReuse
        return policy
    }

    /// - Throws: ``OriginNotPermitted``, or `TransferFailure` if the URL cannot be parsed.
    func checkOrigin(of transfer: TransferRequest) throws {
        guard let permitsOrigin else { return }
        let origin = try TransferOrigin(url: transfer.url)
        guard permitsOrigin(origin) else { throw OriginNotPermitted(origin: origin) }
    }
}

/// The part of a request's state that every thread may read. The request's queue updates it.
final class RequestSnapshot: Sendable {
    struct Values: Sendable {
        var state = Request.State.initialized
        var request: URLRequest?
        var current: URLRequest?
        var head: ResponseHead?
        var retryCount = 0
        var metrics: LazyMetrics?
        var credential: URLCredential?
        var resumeData: Data?
        var ownerRefusal: (any Error)?
    }

    private let values: Lock<Values>

    init(_ request: URLRequest?) {
        values = Lock(Values(request: request, current: request))
    }

    var now: Values { values.withLock { $0 } }

    /// The credential of ``now``. Each transfer reads it, and copying all values takes longer.
    var credential: URLCredential? { values.withLock { $0.credential } }

    func change(_ change: (inout Values) -> Void) {
        values.withLock { change(&$0) }
    }
}
