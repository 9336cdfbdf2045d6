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
    /// What is known of the host.
    public enum NetworkReachabilityStatus: Hashable, Sendable {
        /// It could not be told: the name has not been resolved yet, or the kernel could not be asked.
        case unknown
        /// There is no way to the host.
        case notReachable
        /// There is a way to the host, over this kind of connection.
        case reachable(ConnectionType)
    }

    /// The kind of interface the way leads over.
    public enum ConnectionType: Hashable, Sendable {
        /// Ethernet or Wi-Fi; for now every interface counts as this.
        case ethernetOrWiFi
        /// A mobile network. Not told apart yet, so never reported.
        case wwan
    }

    /// Receives the status each time it changed.
    public typealias Listener = @Sendable (NetworkReachabilityStatus) -> Void

    private struct State {
        var listener: Listener?
        var listenerQueue = DispatchQueue.main
        var watch: PathWatch?
        var session: ListeningSession?
    }

    private let target: PathTarget
    private let monitor: PathMonitor
    private let state = Mutex(State())

    /// Makes a manager for one host.
    ///
    /// - Parameter host: A name or an address literal; see ``NetworkHost/init(_:)``. A scheme, a port or an
    ///   empty string gives `nil`.
    public convenience init?(host: String) {
        self.init(host: host, monitor: .shared)
    }

    /// Makes a manager for the network in general; see ``PathTarget/general``. Never `nil`.
    public convenience init?() {
        self.init(target: .general, monitor: .shared)
    }

    /// Makes a manager for one host on a monitor of your own.
    public convenience init?(host: String, monitor: PathMonitor) {
        guard let host = NetworkHost(host) else { return nil }
        self.init(target: .host(host), monitor: monitor)
    }

    /// Makes a manager for any target on a monitor of your own.
    public init(target: PathTarget, monitor: PathMonitor) {
        self.target = target
        self.monitor = monitor
    }

    deinit {
        stopListening()
    }

    // MARK: Status

    /// The status now. Known at once for an address; `unknown` for a name until its first lookup ended.
    public var networkReachabilityStatus: NetworkReachabilityStatus {
        NetworkReachabilityStatus(watch.status)
    }

    /// Whether there is a way to the host, over whatever kind of connection.
    public var isReachable: Bool {
        isReachableOnWWAN || isReachableOnEthernetOrWiFi
    }

    /// Whether there is a way to the host over a mobile network.
    public var isReachableOnWWAN: Bool {
        networkReachabilityStatus == .reachable(.wwan)
    }

    /// Whether there is a way to the host over Ethernet or Wi-Fi.
    public var isReachableOnEthernetOrWiFi: Bool {
        networkReachabilityStatus == .reachable(.ethernetOrWiFi)
    }

    /// The watch behind the getters, made when first needed.
    private var watch: PathWatch {
        state.withLock { state in
            let watch = state.watch ?? monitor.watch(target) { _ in }
            state.watch = watch
            return watch
        }
    }

    // MARK: Listening

    /// Called with each new status, on ``listenerQueue``. May be replaced at any time.
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
    /// - Returns: Whether the kernel can be asked. If not, the listener hears `unknown`, and the truth as
    ///   soon as it can.
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
        session.begin(monitor.watch(target) { [weak session] in session?.take($0) })
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
}

/// What lies between one `startListening` and its end.
private final class ListeningSession: Sendable {
    private struct State {
        var watch: PathWatch?
        var isEnded = false
    }

    private let queue: DispatchQueue
    private let call: NetworkReachabilityManager.Listener
    private let state = Mutex(State())
    private let delivered = Mutex<NetworkReachabilityManager.NetworkReachabilityStatus?>(nil)

    init(queue: DispatchQueue, call: @escaping NetworkReachabilityManager.Listener) {
        // Serial even where the listener's queue is concurrent.
        self.queue = DispatchQueue(label: "netwatch.reachability", target: queue)
        self.call = call
    }

    /// Keeps the watch whose statuses come to ``take(_:)``, unless the session ended meanwhile.
    func begin(_ watch: PathWatch) {
        let isEnded = state.withLock { state in
            if !state.isEnded { state.watch = watch }
            return state.isEnded
        }
        if isEnded { watch.cancel() }
    }

    func end() {
        let watch = state.withLock { state in
            state.isEnded = true
            defer { state.watch = nil }
            return state.watch
        }
        watch?.cancel()
    }

    /// Passes a status on if it differs from the one passed on before.
    func take(_ status: PathStatus) {
        let status = NetworkReachabilityManager.NetworkReachabilityStatus(status)
        let isNew = delivered.withLock { delivered in
            defer { delivered = status }
            return delivered != status
        }
        guard isNew else { return }
        queue.async { [self] in
            if !state.withLock({ $0.isEnded }) { call(status) }
        }
    }
}

extension NetworkReachabilityManager.NetworkReachabilityStatus {
    fileprivate init(_ status: PathStatus) {
        switch status.verdict {
        case .unknown: self = .unknown
        case .notReachable: self = .notReachable
        case .reachable: self = .reachable(.ethernetOrWiFi)
        }
    }
}
