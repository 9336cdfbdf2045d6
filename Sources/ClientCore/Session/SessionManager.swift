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
}
