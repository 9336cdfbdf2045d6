public import Dispatch
internal import Synchronization

/// Listens for changes of the reachability of one host, or of the network in general.
///
/// It reports whether a packet could leave this machine towards the host, never whether the host would answer. Do not
/// use it to decide whether to send. Send, and use it to explain a failure or to decide when to retry.
///
/// Retain the manager for as long as it should listen. It can be used from any thread.
public final class NetworkReachabilityManager: Sendable {
    /// A closure that receives the status after each change.
    public typealias Listener = @Sendable (NetworkReachabilityStatus) -> Void

    private struct State {
        var listener: Listener?
        var listenerQueue = DispatchQueue.main
        var watch: PathWatch?
        var session: ListeningSession?
    }

    /// A manager for the network in general, like `NetworkReachabilityManager()`.
    public static let `default` = NetworkReachabilityManager()

    private let target: PathTarget
    private let options: PathOptions
    private let monitor: PathMonitor
    private let state = Mutex(State())

    /// Creates a manager for one host.
    ///
    /// - Parameter host: A name or an address literal; see ``NetworkHost/init(validating:)``. Returns `nil` for a
    ///   scheme, a port, an empty string and other invalid hosts; ``init(validating:options:monitor:)`` throws the
    ///   reason.
    public convenience init?(host: String) {
        self.init(host: host, monitor: .shared)
    }

    /// Creates a manager for the network in general; see ``PathTarget/general``. Never returns `nil`.
    public convenience init?() {
        self.init(target: .general)
    }

    /// Creates a manager for one host on the given monitor.
    public convenience init?(host: String, monitor: PathMonitor) {
        guard let host = NetworkHost(host) else { return nil }
        self.init(target: .host(host), monitor: monitor)
    }

    /// Creates a manager for one host.
    ///
    /// - Parameters:
    ///   - host: A name or an address literal.
    ///   - options: The socket options of the packets. Default: none.
    ///   - monitor: The monitor to use. Default: the shared monitor of the process.
    /// - Throws: ``InvalidHost`` with the reason why the host is not valid.
    public convenience init(
        validating host: String,
        options: PathOptions = PathOptions(),
        monitor: PathMonitor = .shared
    ) throws(InvalidHost) {
        self.init(target: .host(try NetworkHost(validating: host)), options: options, monitor: monitor)
    }

    /// Creates a manager for any target.
    ///
    /// - Parameters:
    ///   - target: The target to watch.
    ///   - options: The socket options of the packets. Default: none.
    ///   - monitor: The monitor to use. Default: the shared monitor of the process.
    public init(target: PathTarget, options: PathOptions = PathOptions(), monitor: PathMonitor = .shared) {
        self.target = target
        self.options = options
        self.monitor = monitor
    }

    deinit {
        stopListening()
    }

    // MARK: Status

    /// The reachability of the host in more detail than ``networkReachabilityStatus``: the interface and the source
    /// address, or the reason. The first access starts a watch.
    public var pathStatus: PathStatus {
        watch.status
    }

    /// The watch behind the getters, created on first use.
    private var watch: PathWatch {
        if let watch = state.withLock({ $0.watch }) { return watch }
        // Not under the lock: on the monitor's own thread, `watch` may call subscribers, which may call this manager.
        let new = monitor.watch(target, options: options) { _ in }
        return state.withLock { state in
            let watch = state.watch ?? new
            state.watch = watch
            return watch
        }
    }

    /// The statuses, starting with the current one, without consecutive duplicates. A slow reader gets only the
    /// newest one. Each call returns an independent sequence.
    public var statuses: ReachabilityStatuses {
        ReachabilityStatuses(paths: paths)
    }

    /// The detailed statuses, starting with the current one. Unlike ``statuses``, they also report a change that
    /// affects only the path. A slow reader gets only the newest one. Each call returns an independent sequence.
    public var paths: AsyncStream<PathStatus> {
        monitor.statuses(of: target, options: options)
    }

    // MARK: Listening

    /// Called with the first status and each new one on ``listenerQueue``. Can be replaced at any time.
    public var listener: Listener? {
        get { state.withLock { $0.listener } }
        set { state.withLock { $0.listener = newValue } }
    }

    /// The queue on which the listener is called. Default: the main queue. A change takes effect with the next
    /// ``startListening()``.
    public var listenerQueue: DispatchQueue {
        get { state.withLock { $0.listenerQueue } }
        set { state.withLock { $0.listenerQueue = newValue } }
    }

    /// Starts calling the listener: first with the current status, even if it is offline, then with each status that
    /// differs from the previous one. Calls are serial. Calling this method again restarts listening.
    ///
    /// - Returns: `false` if netlink is unavailable. The listener then receives `unknown` for a target whose path
    ///   cannot be found by other means, and the real status once netlink is available.
    @discardableResult
    public func startListening() -> Bool {
        let session = ListeningSession(queue: listenerQueue) { [weak self] status in
            self?.listener?(status)
        }
        let previous = state.withLock { state in
            defer { state.session = session }
            return state.session
        }
        previous?.end()
        begin(session)
        return monitor.failure == nil
    }

    /// Starts calling a listener, which replaces the previous one. Otherwise the same as ``startListening()``. An
    /// addition of Alamofire 5, under the same name.
    ///
    /// - Parameters:
    ///   - queue: The queue on which the listener is called. Default: the main queue.
    ///   - listener: The closure to call.
    /// - Returns: Whether netlink is available.
    @discardableResult
    public func startListening(
        onQueue queue: DispatchQueue = .main,
        onUpdatePerforming listener: @escaping Listener
    ) -> Bool {
        // Stop first: the previous queue may still hold statuses for the previous listener.
        stopListening()
        listenerQueue = queue
        self.listener = listener
        return startListening()
    }

    /// Stops calling the listener. If called on ``listenerQueue``, the listener is not called again after this method
    /// returns. If called from elsewhere, a call that has already begun may still be running.
    public func stopListening() {
        let session = state.withLock { state in
            defer { state.session = nil }
            return state.session
        }
        session?.end()
    }

    /// Adds another listener, which is called in the same way and independently of ``listener``.
    ///
    /// - Parameters:
    ///   - queue: The queue on which the listener is called. Default: the main queue.
    ///   - listener: The closure to call.
    /// - Returns: An object that must be retained for as long as the listener should be called.
    public func addListener(
        onQueue queue: DispatchQueue = .main,
        _ listener: @escaping Listener
    ) -> ReachabilityListening {
        let session = ListeningSession(queue: queue, listener: listener)
        begin(session)
        return ReachabilityListening(session)
    }

    private func begin(_ session: ListeningSession) {
        session.begin(monitor.watch(target, options: options) { [weak session] in session?.take($0) })
    }
}

/// An added listener. It is called until this object is cancelled or released.
public final class ReachabilityListening: Sendable {
    private let session: ListeningSession

    fileprivate init(_ session: ListeningSession) {
        self.session = session
    }

    deinit {
        session.end()
    }

    /// Removes the listener. If called on the listener's queue, the listener is not called again after this method
    /// returns.
    public func cancel() {
        session.end()
    }
}
