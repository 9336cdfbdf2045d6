public import Dispatch
internal import Synchronization

/// Listens for changes of the reachability of one host, or of the network in general.
///
/// It tells whether a packet could leave this machine towards the host, never whether the host would
/// answer. Do not ask it whether to send: send, and use it to explain a failure or to know when to try
/// again.
///
/// Keep a reference to the manager for as long as it should listen. It may be used from any thread.
public final class NetworkReachabilityManager: Sendable {
    /// Receives the status each time it changed.
    public typealias Listener = @Sendable (NetworkReachabilityStatus) -> Void

    private struct State {
        var listener: Listener?
        var listenerQueue = DispatchQueue.main
        var watch: PathWatch?
        var session: ListeningSession?
    }

    /// A manager of the network in general, like `NetworkReachabilityManager()`.
    public static let `default` = NetworkReachabilityManager()

    private let target: PathTarget
    private let options: PathOptions
    private let monitor: PathMonitor
    private let state = Mutex(State())

    /// Makes a manager for one host.
    ///
    /// - Parameter host: A name or an address literal; see ``NetworkHost/init(validating:)``. A scheme, a
    ///   port or an empty string gives `nil`; ``init(validating:options:monitor:)`` says why.
    public convenience init?(host: String) {
        self.init(host: host, monitor: .shared)
    }

    /// Makes a manager for the network in general; see ``PathTarget/general``. Never `nil`.
    public convenience init?() {
        self.init(target: .general)
    }

    /// Makes a manager for one host on a monitor of your own.
    public convenience init?(host: String, monitor: PathMonitor) {
        guard let host = NetworkHost(host) else { return nil }
        self.init(target: .host(host), monitor: monitor)
    }

    /// Makes a manager for one host.
    ///
    /// - Parameters:
    ///   - host: A name or an address literal.
    ///   - options: What is special about the packets whose way is asked for. Default nothing.
    ///   - monitor: The monitor to ask. Default the one that the process shares.
    /// - Throws: ``InvalidHost``, which says what is wrong with the host.
    public convenience init(
        validating host: String,
        options: PathOptions = PathOptions(),
        monitor: PathMonitor = .shared
    ) throws(InvalidHost) {
        self.init(target: .host(try NetworkHost(validating: host)), options: options, monitor: monitor)
    }

    /// Makes a manager for any target.
    ///
    /// - Parameters:
    ///   - target: What to listen for.
    ///   - options: What is special about the packets whose way is asked for. Default nothing.
    ///   - monitor: The monitor to ask. Default the one that the process shares.
    public init(target: PathTarget, options: PathOptions = PathOptions(), monitor: PathMonitor = .shared) {
        self.target = target
        self.options = options
        self.monitor = monitor
    }

    deinit {
        stopListening()
    }

    // MARK: Status

    /// What is known of the way to the host, in more detail than ``networkReachabilityStatus``: over which
    /// interface, from which address, or why not. The first question starts a watch.
    public var pathStatus: PathStatus {
        watch.status
    }

    /// The watch behind the getters, made when first needed.
    private var watch: PathWatch {
        if let watch = state.withLock({ $0.watch }) { return watch }
        // Not under the lock: on the monitor's own thread it may call others, who may come back here.
        let new = monitor.watch(target, options: options) { _ in }
        return state.withLock { state in
            let watch = state.watch ?? new
            state.watch = watch
            return watch
        }
    }

    /// The statuses, the present one first, none the same as the one before. Only the newest is kept for a
    /// slow reader. Each call gives a sequence of its own.
    public var statuses: ReachabilityStatuses {
        ReachabilityStatuses(paths: paths)
    }

    /// The statuses in detail, the present one first. Unlike ``statuses`` they tell when only the way
    /// changed. Only the newest is kept for a slow reader. Each call gives a sequence of its own.
    public var paths: AsyncStream<PathStatus> {
        monitor.statuses(of: target, options: options)
    }

    // MARK: Listening

    /// Called with the first status and each new one, on ``listenerQueue``. May be replaced at any time.
    public var listener: Listener? {
        get { state.withLock { $0.listener } }
        set { state.withLock { $0.listener = newValue } }
    }

    /// The queue the listener is called on. Default the main queue. A change takes effect with the next
    /// ``startListening()``.
    public var listenerQueue: DispatchQueue {
        get { state.withLock { $0.listenerQueue } }
        set { state.withLock { $0.listenerQueue = newValue } }
    }

    /// Starts calling the listener: with the present status first, offline included, then with each that
    /// differs from the one before. Calls come one at a time. Starting again starts over.
    ///
    /// - Returns: `false` when the kernel cannot be asked now; the listener is then told `unknown` of what cannot
    ///   be told otherwise, and the truth once it can.
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

    /// Stops calling the listener. Once this returned on ``listenerQueue``, it is not called again; called
    /// from elsewhere, a call that has begun may still be running.
    public func stopListening() {
        let session = state.withLock { state in
            defer { state.session = nil }
            return state.session
        }
        session?.end()
    }

    /// Calls another listener beside ``listener``, whatever that one does, in the same way.
    ///
    /// - Parameters:
    ///   - queue: Where it is called. Default the main queue.
    ///   - listener: What is called.
    /// - Returns: What has to be retained for as long as the listener is to be called.
    public func addListener(
        onQueue queue: DispatchQueue = .main,
        _ listener: @escaping Listener
    ) -> ReachabilityListening {
        let session = ListeningSession(queue: queue, call: listener)
        begin(session)
        return ReachabilityListening(session)
    }

    private func begin(_ session: ListeningSession) {
        session.begin(monitor.watch(target, options: options) { [weak session] in session?.take($0) })
    }
}

/// One listener that was added. It is called until this is cancelled or released.
public final class ReachabilityListening: Sendable {
    private let session: ListeningSession

    fileprivate init(_ session: ListeningSession) {
        self.session = session
    }

    deinit {
        session.end()
    }

    /// Ends the listening. Once this returned on the listener's queue, the listener is not called again.
    public func cancel() {
        session.end()
    }
}
