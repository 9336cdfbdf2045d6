public import Dispatch
internal import Foundation
public import FoundationNetworking
package import NetwatchTransport
package import NetworkReachability

/// A session, which creates requests and retains them while they run.
///
/// ```swift
/// final class NotesClient: Sendable {
///     private let session: SessionManager
///
///     init() {
///         let configuration = URLSessionConfiguration.default
///         configuration.httpAdditionalHeaders = SessionManager.defaultHTTPHeaders
///         configuration.timeoutIntervalForRequest = 20
///         session = SessionManager(configuration: configuration)
///     }
///
///     func notes() async throws -> String {
///         try await session.request("https://example.com/notes").validate().string
///     }
/// }
/// ```
///
/// Releasing the last reference to a session ends its requests, and their handlers receive
/// ``AFError/sessionDeinitialized``. So retain a session in a property or a global constant until its requests have
/// ended: an optimized build releases a local variable after its last use. All functions may be called from any thread.
public final class SessionManager: Sendable {
    /// The shared session, which exists as long as the process. It has Foundation's default configuration and
    /// ``defaultHTTPHeaders``.
    public static let `default`: SessionManager = {
        let configuration = URLSessionConfiguration.default
        configuration.httpAdditionalHeaders = defaultHTTPHeaders
        return SessionManager(configuration: configuration)
    }()

    /// The header fields that ``default`` adds to every request: `Accept-Encoding`, `Accept-Language` and
    /// `User-Agent`.
    ///
    /// - `Accept-Encoding` lists the encodings that libcurl can decode.
    /// - `Accept-Language` lists up to six languages from the environment variables `LANGUAGE`, `LC_ALL`, `LC_MESSAGES`
    ///   and `LANG`.
    /// - `User-Agent` names the program, the operating system and netwatch.
    public static let defaultHTTPHeaders: HTTPHeaders = DefaultHTTPHeaders.headers(
        decoders: TransferCapabilities.current.decodableEncodings
    )

    /// The features that the libcurl of this process lacks, with their consequences: one sentence for each feature.
    ///
    /// The list is empty on Debian and Ubuntu. Without OpenSSL, requests that need more than the system's certificate
    /// authorities are refused. If libcurl uses another major version of OpenSSL than this program, all requests are
    /// refused. Without HTTP/2, requests use HTTP/1.1.
    public static var transportShortcomings: [String] { TransferCapabilities.current.shortcomings }

    /// The libraries that transfer, such as `libcurl 7.88.1 with OpenSSL/3.0.17`.
    package static var transportLibraries: String {
        let libraries = TransferCapabilities.current
        return "libcurl \(libraries.version) with \(libraries.tlsLibrary ?? "no TLS")"
    }

    /// The reason why no session can send requests: libcurl uses another major version of OpenSSL than this program;
    /// `nil` if sessions can send.
    package static var transportConflict: String? { TransferCapabilities.current.openSSLConflict }

    /// Whether the libraries can transfer over https.
    package static var canTransferSecurely: Bool {
        let libraries = TransferCapabilities.current
        return libraries.tlsLibrary != nil && transportConflict == nil
    }

    /// Waits until the thread that all sessions share has run everything that was submitted before. Returns immediately
    /// if no request was started yet.
    package static func awaitTransportTurn() async { await TransferEngine.shared.awaitTurn() }

    let context: SessionContext

    /// Creates a session.
    ///
    /// - Parameters:
    ///   - configuration: The configuration, which is read only during this call; see <doc:SessionConfiguration> for
    ///     the supported properties. Default: Foundation's default configuration. It adds no header fields, and its
    ///     cookies are in memory, shared by the whole program.
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

    /// Creates a session that sends all requests to one unix socket (`unix(7)`), whatever host their URLs name. The
    /// session has no cookies.
    ///
    /// - Parameter unixSocketPath: The socket's path, at most 107 bytes.
    public convenience init(unixSocketPath: String) {
        self.init(exactUnixSocketPath: ExactText.representing(unixSocketPath))
    }

    /// Creates a session that sends all requests to one unix socket, whose path can be any bytes.
    ///
    /// - Parameter exactUnixSocketPath: The socket's path, as an `ExactText` of at most 107 bytes.
    package convenience init(exactUnixSocketPath: String) {
        self.init(engine: .shared, settings: SessionSettings(unixSocketPath: exactUnixSocketPath))
    }

    /// Creates a session without cookies and header fields, like ``bare()``.
    ///
    /// - Parameters:
    ///   - engine: The engine that runs the transfers.
    ///   - serverTrustPolicyManager: Defines how servers are evaluated. Default: `nil`, the default evaluation.
    ///   - monitor: The monitor of the paths to servers. This autoclosure is evaluated when a path is first needed. The
    ///     monitor must watch the engine's network namespace. Default: the shared monitor.
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
    /// - Parameter monitor: The monitor of the paths to servers.
    package convenience init(monitor: PathMonitor) {
        self.init(engine: .shared, settings: SessionSettings(.default), monitor: monitor)
    }

    /// Returns a session without cookies and header fields.
    ///
    /// - Parameter monitor: The monitor of the paths to servers. Default: the shared monitor.
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

    /// The storage of the session's cookies; `nil` if its configuration has none. The program can read, set and delete
    /// cookies.
    ///
    /// If the configuration has `HTTPCookieStorage.shared`, as each `.default` configuration does, this is another
    /// storage, which all such sessions share and which stays in memory; see <doc:SessionConfiguration>.
    public var cookieStorage: HTTPCookieStorage? { context.settings.cookies?.storage }

    /// The adapter, which changes requests before they are sent. Default: `nil`.
    public var adapter: (any RequestAdapter)? {
        get { context.hooks.adapter }
        set { context.changeHooks { $0.adapter = newValue } }
    }

    /// The retrier, which decides whether failed requests are retried. Default: `nil`, no retries.
    public var retrier: (any RequestRetrier)? {
        get { context.hooks.retrier }
        set { context.changeHooks { $0.retrier = newValue } }
    }

    /// The interceptor, which adapts and retries requests asynchronously. It adapts requests after ``adapter``, and is
    /// asked about failures that ``retrier`` does not retry. Default: `nil`.
    public var interceptor: (any RequestInterceptor)? {
        get { context.interceptor }
        set { context.changeHooks { $0.interceptor = newValue } }
    }

    /// Whether requests wait for a network. Default: false.
    ///
    /// If true, a request that has failed because there is no network waits for a path to its host, and is then sent
    /// again. The request waits only after ``retrier`` and ``interceptor`` have declined to retry it. Retries are paced
    /// as by an ``OfflineRetrier``.
    ///
    /// The wait ends when the total timeout has passed since the request's start, even if the path has come and gone in
    /// the meantime. The total timeout is the request's ``RequestOptions/totalTimeout``, or else the session's
    /// `timeoutIntervalForResource`, by default 7 days.
    ///
    /// This is a property of the session, because the property of Foundation's `URLSessionConfiguration` with the same
    /// name cannot be set on Linux. Apple's version waits before the first attempt. This version sends the first
    /// attempt without waiting, because the kernel refuses it immediately if there is no path.
    ///
    /// ```swift
    /// session.waitsForConnectivity = true
    /// session.requestOptions.totalTimeout = 600
    /// // If there is no network, this request waits for one, for up to 10 minutes.
    /// let data = try await session.request("https://example.com/notes").validate().data
    /// print(data.count)
    /// ```
    public var waitsForConnectivity: Bool {
        get { context.hooks.connectivityRetrier != nil }
        set {
            guard newValue != waitsForConnectivity else { return }
            waitForConnectivity(newValue ? RetryPacing() : nil)
        }
    }

    /// Turns ``waitsForConnectivity`` on with a specific pacing; `nil` turns it off.
    package func waitForConnectivity(_ pacing: RetryPacing?) {
        let retrier = pacing.map { ConnectivityRetrier(maximumRetries: .max, pacing: $0) }
        context.changeHooks { $0.connectivityRetrier = retrier }
    }

    /// The owner that is offered the failed requests that ``retrier`` and ``interceptor`` do not retry. It is called
    /// before their handlers. Default: `nil`, the requests fail.
    package var failedRequestOwner: (any FailedRequestOwner)? {
        get { context.hooks.failedRequestOwner }
        set { context.changeHooks { $0.failedRequestOwner = newValue } }
    }

    /// The options of the session's requests. A request overrides them with ``URLRequestConvertible/with(_:)``. A
    /// change applies to requests that are created later. Default: the defaults of ``RequestOptions``.
    public var requestOptions: RequestOptions {
        get { context.hooks.options }
        set { context.changeHooks { $0.options = newValue } }
    }

    /// The monitors that observe the session's requests. They are called in the order of the array. Default: none.
    public var eventMonitors: [any EventMonitor] {
        get { context.hooks.monitors }
        set { context.changeHooks { $0.monitors = newValue } }
    }

    /// Whether requests start when they are created. If false, ``Request/resume()`` starts a request, and so does
    /// awaiting its result. Default: true.
    public var startRequestsImmediately: Bool {
        get { context.hooks.startsImmediately }
        set { context.changeHooks { $0.startsImmediately = newValue } }
    }

    /// The queue for handlers and progress closures that are added without a queue. Default: the main queue, which the
    /// program must run with `dispatchMain()`, a run loop, or asynchronous top-level code.
    public var completionQueue: DispatchQueue {
        get { context.completionQueue }
        set { context.changeHooks { $0.completionQueue = newValue } }
    }

    // MARK: Requests

    /// Creates a request and starts it.
    ///
    /// This function does not throw. If the request is invalid, its handlers receive the error.
    ///
    /// ```swift
    /// session.request(
    ///     "https://example.com/orders", method: .post, parameters: ["product": 17], encoding: JSONEncoding.default
    /// )
    /// .validate()
    /// .responseJSON { response in print(response.result) }
    /// ```
    ///
    /// - Parameters:
    ///   - url: An absolute `http` or `https` URL.
    ///   - method: The method. Default: `GET`.
    ///   - parameters: The parameters that `encoding` adds to the request. Default: none.
    ///   - encoding: Adds the parameters to the request. Default: ``URLEncoding``, which uses the query for `GET`,
    ///     `HEAD` and `DELETE`, and the body for other methods.
    ///   - headers: Header fields, which override the session's. Default: none.
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

    /// Creates a request from a `URLRequest` and starts it. Use this function to send a custom body.
    ///
    /// The `timeoutInterval` of the `URLRequest` is the idle timeout: the maximum time, in seconds, without a byte in
    /// either direction. The value 60, Foundation's default, selects the session's idle timeout.
    ///
    /// ```swift
    /// var urlRequest = URLRequest(url: URL(string: "https://example.com/notes/1")!)
    /// urlRequest.httpMethod = "PUT"
    /// urlRequest.httpBody = Data("a note".utf8)
    /// session.request(urlRequest).validate().response { print($0.response?.statusCode ?? 0) }
    /// ```
    @discardableResult
    public func request(_ urlRequest: any URLRequestConvertible) -> DataRequest {
        start(RequestPlan(urlRequest))
    }

    /// Creates a request with a transfer policy, and starts it.
    ///
    /// - Parameters:
    ///   - body: The body that replaces the request's own. Default: `nil`, which keeps the request's own.
    ///   - policy: The limits of the request, usually a ``TransferPolicy`` of a single transfer.
    package func transfer(
        _ urlRequest: any URLRequestConvertible,
        body: ReplayableBody? = nil,
        policy: TransferPolicy
    ) -> DataRequest {
        var plan = RequestPlan(urlRequest)
        plan.upload = body.map(UploadBody.replayable)
        let defaultBytes = RequestOptions.defaultMaximumDataBytes
        plan.options.maximumDataBytes = max(policy.maximumResponseBytes ?? 0, defaultBytes)
        plan.policy = policy
        return start(plan)
    }

    /// Whether the session has an adapter or an interceptor.
    package var adaptsRequests: Bool {
        let hooks = context.hooks
        return hooks.adapter != nil || hooks.interceptor != nil
    }

    /// Returns the request that the adapter, and after it the interceptor, create from a request. Either may take any
    /// time and may ignore the cancellation of the task.
    ///
    /// - Parameter queue: The queue on which the adapter is called, because it may block its thread.
    /// - Throws: The error of the adapter or of the interceptor.
    package func adapted(_ request: URLRequest, on queue: DispatchQueue) async throws -> URLRequest {
        let hooks = context.hooks
        var request = request
        if let adapter = hooks.adapter {
            let original = request
            let result: Result<URLRequest, any Error> = await withCheckedContinuation { continuation in
                queue.async { continuation.resume(returning: Result { try adapter.adapt(original) }) }
            }
            request = try result.get()
        }
        return try await hooks.interceptor?.adapt(request, for: self) ?? request
    }

    /// Returns the header fields that are sent with an adapted request: its own, those of the session, and cookies.
    package func sentFields(of request: URLRequest) -> [TransferRequest.Header] {
        TransferRequest.headers(of: request, settings: context.settings, isCrossOrigin: false)
    }

    /// The path of the unix socket to which all requests are sent; `nil` if they are sent to the hosts in their URLs.
    package var unixSocketPath: String? { context.settings.unixSocketPath }

    /// Returns whether the server of an `https` URL must prove that it is the URL's host. A pin and a custom evaluation
    /// count as proof.
    package func validatesServer(of url: String) -> Bool {
        context.trust.validatesServer(of: URL(string: url))
    }

    /// Makes later requests use new connections. Cached addresses of host names are kept: when the network changes, the
    /// path monitor empties the resolver's cache.
    package func dropConnections() {
        context.pool.dropConnections()
    }

    /// Restarts the stalled requests to a port of a host. A request is stalled if the server has acknowledged no byte
    /// of it; see ``TransferPool/restartStalled(to:port:)``.
    package func restartStalled(to host: String, port: Int) {
        context.pool.restartStalled(to: host, port: port)
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

    /// Creates a request. Calls the adapter on the caller's thread, and starts the request if the session starts
    /// requests immediately.
    func start<Kind: Request>(_ plan: RequestPlan, as make: (RequestCore) -> Kind) -> Kind {
        let hooks = context.hooks
        var plan = plan
        if let owner = hooks.failedRequestOwner, plan.policy.asksRetrier {
            plan.original = plan.original.map { $0.adding(owner.addedFields(for: $0)) }
        }
        let adapted = Result { try hooks.adapt(plan.original.get(), plan.policy) }
        let core = RequestCore(plan, firstRequest: adapted, hooks: hooks, context: context)
        let request = make(core)
        context.add(request)
        core.begin(request, starts: hooks.startsImmediately)
        return request
    }
}
