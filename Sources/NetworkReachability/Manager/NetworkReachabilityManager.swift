public import Dispatch
internal import NetwatchEventLoop

/// A listener for changes of the reachability of one host, or of the network in general.
///
/// ```swift
/// // A global constant, or a property.
/// let manager = NetworkReachabilityManager(host: "example.com")
///
/// manager?.listener = { status in
///     print("example.com is \(status)")
/// }
/// manager?.startListening()
/// ```
///
/// The status says whether a packet to the host could leave this machine. It does not say whether the host would
/// respond. Therefore do not check the status before you send. Send, and use the status to explain a failure or to
/// decide when to retry.
///
/// The API matches the class of the same name in Alamofire 4, with some additions. Retain the manager for as long as it
/// should listen, in a property or a global constant: an optimized build releases a local variable after its last use.
/// The manager can be used from any thread.
public final class NetworkReachabilityManager: Sendable {
    /// A closure that receives the current status first, and then each new one.
    public typealias Listener = @Sendable (NetworkReachabilityStatus) -> Void

    private struct State {
        var listener: Listener?
        var listenerQueue = DispatchQueue.main
        var watch: PathWatch?
        var session: ListeningSession?
    }

    /// The shared manager for the network in general; see ``PathTarget/general``.
    public static let `default` = NetworkReachabilityManager()

    private let target: PathTarget
    private let options: PathOptions
    private let monitor: PathMonitor
    private let state = Lock(State())

    /// Creates a manager for one host. Returns `nil` if the host is invalid.
    ///
    /// - Parameter host: A name or an address literal, without scheme, port and path; see
    ///   ``NetworkHost/init(validating:)``. To get the reason why a host is invalid, use
    ///   ``init(validating:options:monitor:)``.
    public convenience init?(host: String) {
        self.init(host: host, monitor: .shared)
    }

    /// Creates a manager for the network in general; see ``PathTarget/general``. Never returns `nil`.
    public convenience init?() {
        self.init(target: .general)
    }

    /// Creates a manager for one host that uses the given monitor. Returns `nil` if the host is invalid.
    public convenience init?(host: String, monitor: PathMonitor) {
        guard let host = NetworkHost(host) else { return nil }
        self.init(target: .host(host), monitor: monitor)
    }

    /// Creates a manager for one host, or throws the reason why the host is invalid.
    ///
    /// - Parameters:
    ///   - host: A name or an address literal; see ``NetworkHost/init(validating:)``.
    ///   - options: The socket options of the connections to the host. Default: no option is set.
    ///   - monitor: The monitor to use. Default: the shared monitor of the process.
    /// - Throws: ``InvalidHost`` with the reason.
    public convenience init(
        validating host: String,
        options: PathOptions = PathOptions(),
        monitor: PathMonitor = .shared
    ) throws(InvalidHost) {
        self.init(target: .host(try NetworkHost(validating: host)), options: options, monitor: monitor)
    }

    /// Creates a manager for a target: one host, or the network in general.
    ///
    /// - Parameters:
    ///   - target: The target to watch.
    ///   - options: The socket options of the connections to the target. Default: no option is set.
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

    /// The current status with its details: the path with interface and source address, or the reason why there is no
    /// path. The first access starts a watch.
    public var pathStatus: PathStatus {
        watch.status
    }

    /// The watch from which the getters read the status. Created on first use.
    private var watch: PathWatch {
        if let watch = state.withLock({ $0.watch }) { return watch }
        // Not under the lock: on the monitor's thread, `watch` may call subscribers, and they may call this manager.
        let new = monitor.watch(target, options: options) { _ in }
        return state.withLock { state in
            let watch = state.watch ?? new
            state.watch = watch
            return watch
        }
    }

    /// The statuses as a sequence, starting with the current one. Each differs from the previous one. A slow reader
    /// gets only the newest one. Each access returns an independent sequence.
    ///
    /// ```swift
    /// for await status in manager.statuses where status == .notReachable {
    ///     print(manager.pathStatus.reason?.rawValue ?? "")
    /// }
    /// ```
    public var statuses: ReachabilityStatuses {
        ReachabilityStatuses(paths: paths)
    }

    /// The statuses with their paths as a sequence, starting with the current one.
    ///
    /// Unlike ``statuses``, the sequence also has an element for a change of the path alone, such as another gateway. A
    /// slow reader gets only the newest status. Each access returns an independent sequence.
    public var paths: AsyncStream<PathStatus> {
        monitor.statuses(of: target, options: options)
    }

    // MARK: Listening

    /// The closure that receives the statuses, on ``listenerQueue``. The calls begin with ``startListening()``. The
    /// closure can be replaced at any time.
    @preconcurrency
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

    /// Starts calling the listener: first with the current status, even if it is `notReachable` or `unknown`, then with
    /// each status that differs from the previous one. The calls do not overlap.
    ///
    /// Another call restarts listening, so that the listener receives the current status again.
    ///
    /// - Returns: Whether netlink is available. If it is not, listening starts anyway. The status is then `unknown`
    ///   unless a path can be found without netlink. Once netlink is available, the statuses contain all details.
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

    /// Replaces the listener and its queue, and starts calling the new listener like ``startListening()``. From
    /// Alamofire 5.
    ///
    /// - Parameters:
    ///   - queue: The queue on which the listener is called. Default: the main queue.
    ///   - listener: The closure to call.
    /// - Returns: Whether netlink is available.
    @discardableResult
    @preconcurrency
    public func startListening(
        onQueue queue: DispatchQueue = .main,
        onUpdatePerforming listener: @escaping Listener
    ) -> Bool {
        // Stops first, because statuses for the previous listener may still wait in its queue.
        stopListening()
        listenerQueue = queue
        self.listener = listener
        return startListening()
    }

    /// Stops calling the listener.
    ///
    /// If called on a serial ``listenerQueue``, the listener is not called again after this method returns. If called
    /// elsewhere, a delivery that has already begun may still call the listener.
    public func stopListening() {
        let session = state.withLock { state in
            defer { state.session = nil }
            return state.session
        }
        session?.end()
    }

    /// Adds a listener that is independent of ``listener``, and starts calling it immediately.
    ///
    /// - Parameters:
    ///   - queue: The queue on which the listener is called. Default: the main queue.
    ///   - listener: The closure to call: first with the current status, then with each status that differs from the
    ///     previous one.
    /// - Returns: An object that must be retained for as long as the listener should be called.
    @preconcurrency
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

/// A listener that was added with ``NetworkReachabilityManager/addListener(onQueue:_:)``. It is called until this
/// object is cancelled or released.
public final class ReachabilityListening: Sendable {
    private let session: ListeningSession

    fileprivate init(_ session: ListeningSession) {
        self.session = session
    }

    deinit {
        session.end()
    }

    /// Removes the listener.
    ///
    /// If called on the listener's serial queue, the listener is not called again after this method returns. If called
    /// elsewhere, a delivery that has already begun may still call the listener.
    public func cancel() {
        session.end()
    }
}

extension NetworkReachabilityManager {
    /// The reachability of the target: one host or the network in general.
    public enum NetworkReachabilityStatus: Hashable, Sendable {
        /// The reachability is unknown, for example because the name has not been resolved yet, or because netlink is
        /// unavailable. ``PathStatus/reason`` contains the reason.
        case unknown
        /// The target is not reachable.
        case notReachable
        /// The target is reachable over this type of connection.
        case reachable(ConnectionType)
    }

    /// The type of connection that carries the packets.
    public enum ConnectionType: Hashable, Sendable {
        /// Ethernet, Wi-Fi, and everything else that is not a mobile network.
        case ethernetOrWiFi
        /// A mobile network, directly or under a tunnel; see ``NetworkPath/medium``.
        case wwan

        /// The same value as ``wwan``, under its name in Alamofire 5. In a `switch`, use `.wwan`.
        public static var cellular: ConnectionType { .wwan }
    }

    /// The current status. For a name other than `localhost` it is `unknown` until the first lookup has finished.
    public var networkReachabilityStatus: NetworkReachabilityStatus {
        NetworkReachabilityStatus(pathStatus)
    }

    /// The same as ``networkReachabilityStatus``, under its name in Alamofire 5.
    public var status: NetworkReachabilityStatus {
        networkReachabilityStatus
    }

    /// Whether the target is reachable over any type of connection.
    public var isReachable: Bool {
        pathStatus.isReachable
    }

    /// Whether the target is reachable over a mobile network.
    public var isReachableOnWWAN: Bool {
        networkReachabilityStatus == .reachable(.wwan)
    }

    /// The same as ``isReachableOnWWAN``, under its name in Alamofire 5.
    public var isReachableOnCellular: Bool {
        isReachableOnWWAN
    }

    /// Whether the target is reachable over a connection that is not a mobile network.
    public var isReachableOnEthernetOrWiFi: Bool {
        networkReachabilityStatus == .reachable(.ethernetOrWiFi)
    }
}

extension NetworkReachabilityManager.NetworkReachabilityStatus {
    init(_ status: PathStatus) {
        switch status.verdict {
        case .unknown: self = .unknown
        case .notReachable: self = .notReachable
        case .reachable(let path): self = .reachable(.init(medium: path.medium))
        }
    }
}

extension NetworkReachabilityManager.ConnectionType {
    /// Creates the connection type for a medium; see ``NetworkInterface/medium``.
    ///
    /// Bluetooth and PPP may also lead to a mobile network. They count as `ethernetOrWiFi`, because nothing on this
    /// machine shows where they lead.
    init(medium: InterfaceType) {
        self = medium == .cellular ? .wwan : .ethernetOrWiFi
    }
}

extension NetworkReachabilityManager.NetworkReachabilityStatus: CustomStringConvertible {
    /// A human-readable description of the status.
    public var description: String {
        switch self {
        case .unknown: "unknown"
        case .notReachable: "not reachable"
        case .reachable(.ethernetOrWiFi): "reachable over Ethernet or Wi-Fi"
        case .reachable(.wwan): "reachable over a mobile network"
        }
    }
}
