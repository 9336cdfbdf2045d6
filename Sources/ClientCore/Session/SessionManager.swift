public import Dispatch
internal import Foundation
public import FoundationNetworking
package import NetwatchTransport
package import NetworkReachability

/// Makes requests and keeps them while they run.
///
/// Dropping the last reference to a session cancels its requests: their handlers get
/// ``AFError/sessionDeinitialized``. All functions may be called from any thread.
public final class SessionManager: Sendable {
    /// The session for everyone, with Foundation's default configuration and ``defaultHTTPHeaders``. It is
    /// never dropped.
    public static let `default`: SessionManager = {
        let configuration = URLSessionConfiguration.default
        configuration.httpAdditionalHeaders = defaultHTTPHeaders
        return SessionManager(configuration: configuration)
    }()

    /// What ``default`` says with every request: `Accept-Encoding`, `Accept-Language` and `User-Agent`.
    ///
    /// Encodings are those that libcurl can take off a body; languages up to six of `LANGUAGE`, `LC_ALL`,
    /// `LC_MESSAGES` and `LANG`; the agent names the program, this system and netwatch.
    public static let defaultHTTPHeaders: HTTPHeaders = DefaultHTTPHeaders.headers(
        decoders: TransferCapabilities.current.decodableEncodings
    )

    /// What the libcurl of this process cannot do, with what remains, in a sentence each; empty on Debian and
    /// Ubuntu. Without OpenSSL below it, requests that need more than the system's authorities are refused; without
    /// HTTP/2 they go by HTTP/1.1.
    public static var transportShortcomings: [String] { TransferCapabilities.current.shortcomings }

    let context: SessionContext

    /// Makes a session of its own.
    ///
    /// - Parameters:
    ///   - configuration: Read once, here; see <doc:SessionConfiguration> for what is honoured. Default:
    ///     Foundation's, which adds no header fields and shares one cookie storage with all of the program.
    ///   - delegate: Takes decisions in the session's place. Default: one that takes none.
    ///   - serverTrustPolicyManager: Says what each host has to prove, and to whom the client shows who it is; see
    ///     <doc:Trust>. Default `nil`: the system's authorities vouch for every host.
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

    /// Makes a session whose requests all go to one unix socket (`unix(7)`), whatever host their URLs name. It
    /// has no cookies.
    ///
    /// - Parameter unixSocketPath: The socket's path, at most 107 bytes.
    public convenience init(unixSocketPath: String) {
        self.init(engine: .shared, settings: SessionSettings(unixSocketPath: unixSocketPath))
    }

    /// A session that says nothing and remembers nothing by itself, like ``bare()``.
    ///
    /// - Parameters:
    ///   - engine: Makes its transfers.
    ///   - serverTrustPolicyManager: What servers have to prove. Default: what browsers ask for.
    ///   - monitor: Judges the ways to servers, first made when there is one to judge. It has to watch the network
    ///     namespace of the engine. Default: the shared one.
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

    /// A session with Foundation's default configuration.
    ///
    /// - Parameter monitor: Judges the ways to servers.
    package convenience init(monitor: PathMonitor) {
        self.init(engine: .shared, settings: SessionSettings(.default), monitor: monitor)
    }

    /// A session that says nothing and remembers nothing by itself: no cookies, no header fields.
    ///
    /// - Parameter monitor: Judges the ways to servers. Default: the shared one.
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

    // MARK: What may be set at any time

    /// Takes decisions in the session's place.
    public var delegate: SessionDelegate { context.delegate }

    /// Changes requests before they are sent. Default `nil`.
    public var adapter: (any RequestAdapter)? {
        get { context.hooks.adapter }
        set { context.changeHooks { $0.adapter = newValue } }
    }

    /// Decides whether requests that failed are tried again. Default `nil`: they are not.
    public var retrier: (any RequestRetrier)? {
        get { context.hooks.retrier }
        set { context.changeHooks { $0.retrier = newValue } }
    }

    /// Adapts and retries by asynchronous work, after ``adapter`` and ``retrier``. Default `nil`.
    public var interceptor: (any RequestInterceptor)? {
        get { context.hooks.interceptor }
        set { context.changeHooks { $0.interceptor = newValue } }
    }

    /// Whether requests that fail because there is no network wait for a path to their host, and are then sent:
    /// an ``OfflineRetrier`` that is asked when ``retrier`` and ``interceptor`` have declined. Default false.
    ///
    /// They wait until their ``RequestOptions/totalTimeout``, else the session's `timeoutIntervalForResource`, has passed
    /// since they were started, 7 days by default, however often the path comes and goes. The property of this name of Foundation's
    /// `URLSessionConfiguration` cannot be set on Linux, so it is the session's here. Apple's waits before a
    /// request is sent for the first time; here it is sent at once, since the kernel's refusal costs nothing, and
    /// waits when that has failed. ``RequestRetrier`` and ``RequestInterceptor`` hear of the failure before.
    public var waitsForConnectivity: Bool {
        get { context.hooks.connectivityRetrier != nil }
        set {
            guard newValue != waitsForConnectivity else { return }
            waitForConnectivity(newValue ? RetryPacing() : nil)
        }
    }

    /// Sets ``waitsForConnectivity`` with a pacing of one's own, or with `nil` ends it.
    package func waitForConnectivity(_ pacing: RetryPacing?) {
        let retrier = pacing.map { OfflineRetrier(maximumRetries: .max, pacing: $0) }
        context.changeHooks { $0.connectivityRetrier = retrier }
    }

    /// Is offered the requests that ``retrier`` and ``interceptor`` do not want to try again, before their
    /// handlers are called. Default `nil`: their failures stand.
    package var failedRequestOwner: (any FailedRequestOwner)? {
        get { context.hooks.failedRequestOwner }
        set { context.changeHooks { $0.failedRequestOwner = newValue } }
    }

    /// How requests are carried out that do not say it themselves, by ``URLRequestConvertible/with(_:)``; those made
    /// from now on. Default: as netwatch does it.
    public var requestOptions: RequestOptions {
        get { context.hooks.options }
        set { context.changeHooks { $0.options = newValue } }
    }

    /// Who hears what happens to requests, in this order. Default: nobody.
    public var eventMonitors: [any EventMonitor] {
        get { context.hooks.monitors }
        set { context.changeHooks { $0.monitors = newValue } }
    }

    /// Whether requests start by themselves. Otherwise ``Request/resume()`` starts them, and so does waiting
    /// for their end with `await`. Default true.
    public var startRequestsImmediately: Bool {
        get { context.hooks.startsImmediately }
        set { context.changeHooks { $0.startsImmediately = newValue } }
    }

    /// Where handlers and progress closures are called that name no queue. Default: the main queue, which a
    /// program has to run: by `dispatchMain()`, by a run loop, or by being asynchronous at its top.
    public var completionQueue: DispatchQueue {
        get { context.hooks.completionQueue }
        set { context.changeHooks { $0.completionQueue = newValue } }
    }

    // MARK: Requests

    /// Makes a request and starts it.
    ///
    /// Nothing is thrown: what is wrong with the request becomes the error its handlers get.
    ///
    /// - Parameters:
    ///   - url: An absolute `http` or `https` URL.
    ///   - method: The method. Default `GET`.
    ///   - parameters: What `encoding` puts into the request. Default none.
    ///   - encoding: Default: into the query, or into the body of a method that has one.
    ///   - headers: Header fields, which win over the session's. Default none.
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
                original: Self.made(url, method, parameters, encoding, headers)
            )
        )
    }

    /// Starts a request that was made elsewhere, the way to send a body of one's own.
    ///
    /// Its `timeoutInterval` is how long no byte may go either way; 60, Foundation's default, stands for the
    /// session's.
    @discardableResult
    public func request(_ urlRequest: any URLRequestConvertible) -> DataRequest {
        start(RequestPlan(urlRequest))
    }

    /// One transfer: no redirect is followed, no challenge answered, no retrier asked.
    ///
    /// - Parameters:
    ///   - body: What is sent in place of the request's own body. Default: nothing is.
    ///   - maximumResponseBytes: A body longer than that ends the request with
    ///     `URLError.dataLengthExceedsMaximum`, with the response and that much of its body beside the error.
    ///   - connectTimeout: How long the lookup, the connection and the TLS handshake may take. Default: the session's.
    ///   - responseTimeout: How long the server may be silent between the request's last byte and the answer. Default: as
    ///     long as the session lets anything be silent.
    ///   - totalTimeout: A request that takes longer ends with `URLError.timedOut`.
    ///   - allowsConnectionReuse: Whether a pooled connection may be used, on which libcurl may send the request a
    ///     second time unasked.
    ///   - allowsResending: Whether libcurl may do that. `false` fails the request instead. Default true.
    package func transfer(
        _ urlRequest: any URLRequestConvertible,
        body: KeptBody? = nil,
        maximumResponseBytes: Int,
        connectTimeout: Duration? = nil,
        responseTimeout: Duration? = nil,
        totalTimeout: Duration,
        bodyTimeout: Duration? = nil,
        allowsConnectionReuse: Bool,
        allowsResending: Bool = true
    ) -> DataRequest {
        var plan = RequestPlan(urlRequest)
        plan.upload = body.map(UploadBody.kept)
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

    /// Whether the server of an `https` URL has to prove that it is the URL's host.
    package func validatesServer(of url: String) -> Bool {
        context.trust.validatesServer(of: URL(string: url))
    }

    /// Makes requests from now on use new connections. Cached addresses stay valid: the path monitor empties the resolver's
    /// cache when the network changes.
    package func dropConnections() {
        context.pool.dropConnections()
    }

    /// Begins requests to a host again of which the server has acknowledged nothing; see ``TransferPool/restartStalled(to:)``.
    package func restartStalled(to host: String) {
        context.pool.restartStalled(to: host)
    }
}

extension SessionManager {
    static func made(
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

    /// Adapts the request, on the caller's thread, and starts it if that is what the session does.
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
