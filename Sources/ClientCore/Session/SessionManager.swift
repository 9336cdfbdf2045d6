public import Dispatch
internal import Foundation
public import FoundationNetworking
package import NetwatchTransport
package import NetworkReachability

/// Creates requests and retains them while they run.
///
/// Releasing the last reference to a session cancels its requests. Their handlers receive
/// ``AFError/sessionDeinitialized``. All functions may be called from any thread.
public final class SessionManager: Sendable {
    /// The shared session, with Foundation's default configuration and ``defaultHTTPHeaders``. It is never
    /// released.
    public static let `default`: SessionManager = {
        let configuration = URLSessionConfiguration.default
        configuration.httpAdditionalHeaders = defaultHTTPHeaders
        return SessionManager(configuration: configuration)
    }()

    /// The header fields that ``default`` adds to every request: `Accept-Encoding`, `Accept-Language` and
    /// `User-Agent`.
    ///
    /// The encodings are those that libcurl can decode. The languages are up to six from `LANGUAGE`, `LC_ALL`,
    /// `LC_MESSAGES` and `LANG`. The user agent names the program, the operating system and netwatch.
    public static let defaultHTTPHeaders: HTTPHeaders = DefaultHTTPHeaders.headers(
        decoders: TransferCapabilities.current.decodableEncodings
    )

    /// The features that the libcurl of this process lacks, with their consequences, one sentence each. Empty
    /// on Debian and Ubuntu. Without OpenSSL, requests that need more than the system's certificate authorities
    /// are refused. Without HTTP/2, requests use HTTP/1.1.
    public static var transportShortcomings: [String] { TransferCapabilities.current.shortcomings }

    let context: SessionContext

    /// Creates a session.
    ///
    /// - Parameters:
    ///   - configuration: Read once, during this call; see <doc:SessionConfiguration> for the supported
    ///     properties. Default: Foundation's, which adds no header fields and shares one cookie storage with
    ///     the whole program.
    ///   - delegate: Makes decisions for the session. Default: a delegate without closures.
    ///   - serverTrustPolicyManager: Defines for each host how its certificate is evaluated and which client
    ///     certificate is sent; see <doc:Trust>. Default: `nil`, the system's certificate authorities for every
    ///     host.
    public convenience init(
        configuration: URLSessionConfiguration = .default,
        delegate: SessionDelegate = SessionDelegate(),
        serverTrustPolicyManager: ServerTrustPolicyManager? = nil
    ) {
        self.init(
            engine: .shared,
            settings: SessionSettings(configuration),
            delegate: delegate,
            serverTrustPolicyManager: serverTrustPolicyManager
        )
    }

    /// Creates a session that sends all requests to one unix socket (`unix(7)`), regardless of the host in
    /// their URLs. It has no cookies.
    ///
    /// - Parameter unixSocketPath: The socket's path, at most 107 bytes.
    public convenience init(unixSocketPath: String) {
        self.init(engine: .shared, settings: SessionSettings(unixSocketPath: unixSocketPath))
    }

    /// Creates a session without cookies and header fields, like ``bare()``.
    ///
    /// - Parameters:
    ///   - engine: Runs the transfers.
    ///   - serverTrustPolicyManager: Defines how servers are evaluated. Default: as in browsers.
    ///   - monitor: Evaluates the paths to servers. Created when the first path is evaluated. It must watch the
    ///     network namespace of the engine. Default: the shared monitor.
    package convenience init(
        engine: TransferEngine,
        serverTrustPolicyManager: ServerTrustPolicyManager? = nil,
        monitor: @autoclosure @escaping @Sendable () -> PathMonitor = .shared
    ) {
        self.init(
            engine: engine,
            settings: SessionSettings(),
            serverTrustPolicyManager: serverTrustPolicyManager,
            monitor: monitor()
        )
    }

    /// Creates a session with Foundation's default configuration.
    ///
    /// - Parameter monitor: Evaluates the paths to servers.
    package convenience init(monitor: PathMonitor) {
        self.init(engine: .shared, settings: SessionSettings(.default), monitor: monitor)
    }

    /// Returns a session without cookies and header fields.
    ///
    /// - Parameter monitor: Evaluates the paths to servers. Default: the shared monitor.
    package static func bare(
        monitor: @autoclosure @escaping @Sendable () -> PathMonitor = .shared
    ) -> SessionManager {
        SessionManager(engine: .shared, monitor: monitor())
    }

    init(
        engine: TransferEngine,
        settings: SessionSettings,
        delegate: SessionDelegate = SessionDelegate(),
        serverTrustPolicyManager: ServerTrustPolicyManager? = nil,
        monitor: @autoclosure @escaping @Sendable () -> PathMonitor = .shared
    ) {
        context = SessionContext(
            engine: engine,
            settings: settings,
            delegate: delegate,
            serverTrustPolicyManager: serverTrustPolicyManager,
            monitor: monitor
        )
        context.manager = self
    }

    deinit {
        for request in context.running { request.sessionDropped() }
    }

    // MARK: Properties that may change at any time

    /// The delegate, which makes decisions for the session.
    public var delegate: SessionDelegate { context.delegate }

    /// Changes requests before they are sent. Default: `nil`.
    public var adapter: (any RequestAdapter)? {
        get { context.hooks.adapter }
        set { context.changeHooks { $0.adapter = newValue } }
    }

    /// Decides whether failed requests are retried. Default: `nil`, no retries.
    public var retrier: (any RequestRetrier)? {
        get { context.hooks.retrier }
        set { context.changeHooks { $0.retrier = newValue } }
    }

    /// Adapts and retries requests asynchronously, after ``adapter`` and ``retrier``. Default: `nil`.
    public var interceptor: (any RequestInterceptor)? {
        get { context.hooks.interceptor }
        set { context.changeHooks { $0.interceptor = newValue } }
    }

    /// Whether requests that fail because there is no network wait for a path to their host and are then sent.
    /// This is done by an ``OfflineRetrier``, which is asked when ``retrier`` and ``interceptor`` have declined.
    /// Default: false.
    ///
    /// The wait ends when the total timeout has passed since the request's start. That is the request's
    /// ``RequestOptions/totalTimeout``, or else the session's `timeoutIntervalForResource`, by default 7 days.
    /// It does not start over when the path comes and goes.
    ///
    /// Foundation's `URLSessionConfiguration` property of the same name cannot be set on Linux, so it belongs
    /// to the session here. Apple's version waits before the first attempt. This one sends immediately, because
    /// a refusal by the kernel needs no time, and waits after that failure. ``RequestRetrier`` and
    /// ``RequestInterceptor`` are asked about the failure first.
    public var waitsForConnectivity: Bool {
        get { context.hooks.connectivityRetrier != nil }
        set {
            guard newValue != waitsForConnectivity else { return }
            waitForConnectivity(newValue ? RetryPacing() : nil)
        }
    }

    /// Sets ``waitsForConnectivity`` with a specific pacing; `nil` turns it off.
    package func waitForConnectivity(_ pacing: RetryPacing?) {
        let retrier = pacing.map { ConnectivityRetrier(maximumRetries: .max, pacing: $0) }
        context.changeHooks { $0.connectivityRetrier = retrier }
    }

    /// Is offered the failed requests that ``retrier`` and ``interceptor`` do not retry, before their handlers are
    /// called. Default: `nil`, the failures stand.
    package var failedRequestOwner: (any FailedRequestOwner)? {
        get { context.hooks.failedRequestOwner }
        set { context.changeHooks { $0.failedRequestOwner = newValue } }
    }

    /// The options of requests that do not set their own with ``URLRequestConvertible/with(_:)``. A change
    /// applies to requests created later. Default: netwatch's defaults.
    public var requestOptions: RequestOptions {
        get { context.hooks.options }
        set { context.changeHooks { $0.options = newValue } }
    }

    /// The monitors of the session's requests, called in this order. Default: none.
    public var eventMonitors: [any EventMonitor] {
        get { context.hooks.monitors }
        set { context.changeHooks { $0.monitors = newValue } }
    }

    /// Whether requests start when they are created. Otherwise ``Request/resume()`` starts them, and so does
    /// awaiting their result. Default: true.
    public var startRequestsImmediately: Bool {
        get { context.hooks.startsImmediately }
        set { context.changeHooks { $0.startsImmediately = newValue } }
    }

    /// The queue for handlers and progress closures that are added without one. Default: the main queue, which
    /// the program must run with `dispatchMain()`, a run loop, or asynchronous top-level code.
    public var completionQueue: DispatchQueue {
        get { context.hooks.completionQueue }
        set { context.changeHooks { $0.completionQueue = newValue } }
    }

    // MARK: Requests

    /// Creates a request and starts it.
    ///
    /// Does not throw: handlers receive the error of an invalid request.
    ///
    /// - Parameters:
    ///   - url: An absolute `http` or `https` URL.
    ///   - method: The method. Default: `GET`.
    ///   - parameters: The parameters that `encoding` adds to the request. Default: none.
    ///   - encoding: Default: in the query, or in the body for methods that have one.
    ///   - headers: Header fields. They override the session's. Default: none.
    @discardableResult
    public func request(
        _ url: any URLConvertible,
        method: HTTPMethod = .get,
        parameters: Parameters? = nil,
        encoding: any ParameterEncoding = URLEncoding.default,
        headers: HTTPHeaders? = nil
    ) -> DataRequest {
        start(
            RequestPlan(
                original: Self.makeRequest(url, method, parameters, encoding, headers)
            )
        )
    }

    /// Starts an existing request. Use this function to send a custom body.
    ///
    /// The request's `timeoutInterval` is the maximum time without a byte in either direction. 60, Foundation's
    /// default, selects the session's value.
    @discardableResult
    public func request(_ urlRequest: any URLRequestConvertible) -> DataRequest {
        start(RequestPlan(urlRequest))
    }

    /// Runs a single transfer: follows no redirects, answers no challenges and asks no retriers.
    ///
    /// - Parameters:
    ///   - body: The body that replaces the request's own. Default: `nil`, which keeps the request's own.
    ///   - maximumResponseBytes: A longer body ends the request with `URLError.dataLengthExceedsMaximum`. The
    ///     response and that many bytes of the body are available with the error.
    ///   - connectTimeout: The time limit for the lookup, the connection and the TLS handshake. Default: the
    ///     session's.
    ///   - responseTimeout: The time that the server may stay silent between the last byte of the request and
    ///     the response. Default: the session's idle timeout.
    ///   - totalTimeout: A request that takes longer ends with `URLError.timedOut`.
    ///   - allowsConnectionReuse: Whether a pooled connection may be used, on which libcurl may send the
    ///     request again by itself.
    ///   - allowsResending: Whether libcurl may do that. With `false` the request fails instead. Default: true.
    package func transfer(
        _ urlRequest: any URLRequestConvertible,
        body: ReplayableBody? = nil,
        maximumResponseBytes: Int,
        connectTimeout: Duration? = nil,
        responseTimeout: Duration? = nil,
        totalTimeout: Duration,
        bodyTimeout: Duration? = nil,
        allowsConnectionReuse: Bool,
        allowsResending: Bool = true
    ) -> DataRequest {
        var plan = RequestPlan(urlRequest)
        plan.upload = body.map(UploadBody.replayable)
        plan.policy = TransferPolicy(
            followsRedirects: false,
            asksRetrier: false,
            maximumResponseBytes: maximumResponseBytes,
            totalTimeout: totalTimeout,
            connectTimeout: connectTimeout,
            responseTimeout: responseTimeout,
            bodyTimeout: bodyTimeout,
            allowsConnectionReuse: allowsConnectionReuse,
            allowsResending: allowsResending
        )
        return start(plan)
    }

    /// Whether the host name of an `https` URL is checked against its server's certificate. Pinning and custom
    /// checks count as well.
    package func validatesServer(of url: String) -> Bool {
        context.trust.validatesServer(of: URL(string: url))
    }

    /// Makes later requests use new connections. Cached addresses stay valid: the path monitor empties the
    /// resolver's cache when the network changes.
    package func dropConnections() {
        context.pool.dropConnections()
    }

    /// Begins requests to a host again of which the server has acknowledged nothing; see
    /// ``TransferPool/restartStalled(to:)``.
    package func restartStalled(to host: String) {
        context.pool.restartStalled(to: host)
    }
}

extension SessionManager {
    static func makeRequest(
        _ url: any URLConvertible,
        _ method: HTTPMethod,
        _ parameters: Parameters?,
        _ encoding: any ParameterEncoding,
        _ headers: HTTPHeaders?
    ) -> Result<URLRequest, any Error> {
        Result {
            let request = try URLRequest(url: url, method: method, headers: headers)
            return try encoding.encode(request, with: parameters)
        }
    }

    func start(_ plan: RequestPlan) -> DataRequest { start(plan, as: DataRequest.init) }

    /// Adapts the request on the caller's thread, and starts it if the session starts requests immediately.
    func start<Kind: Request>(_ plan: RequestPlan, as make: (RequestCore) -> Kind) -> Kind {
        let hooks = context.hooks
        let adapted = Result {
            let original = try plan.original.get()
            return try hooks.adapter?.adapt(original) ?? original
        }
        let core = RequestCore(plan, firstRequest: adapted, context: context)
        let request = make(core)
        context.add(request)
        core.begin(request, starts: hooks.startsImmediately)
        return request
    }
}
