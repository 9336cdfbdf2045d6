internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTransport
internal import NetworkReachability
internal import Synchronization

/// A request or a stream. Its session retains it until it has ended, and ends it when the session itself is released.
protocol SessionTask: Sendable {
    /// The task's number in its session.
    var identifier: Int { get }
    func sessionDropped()
}

/// The state that a session's requests share. It may outlive the session, until the last request has ended.
final class SessionContext: Sendable {
    /// The properties that a program may change while requests are running.
    struct Hooks: Sendable {
        var adapter: (any RequestAdapter)?
        var retrier: (any RequestRetrier)?
        var interceptor: (any RequestInterceptor)?
        /// Asked about a failure that neither the retrier nor the interceptor retries; see
        /// ``SessionManager/waitsForConnectivity``.
        var connectivityRetrier: ConnectivityRetrier?
        var failedRequestOwner: (any FailedRequestOwner)?
        var monitors: [any EventMonitor] = []
        var options = RequestOptions()
        var startsImmediately = true
        var completionQueue = DispatchQueue.main

        /// Returns the request that the adapter makes of a request; the request itself if the session has no adapter or
        /// the request has been adapted already.
        func adapt(_ request: URLRequest, _ policy: TransferPolicy) throws -> URLRequest {
            try policy.isAdapted ? request : adapter?.adapt(request) ?? request
        }
    }

    private struct State {
        weak var manager: SessionManager?
        var running: [Int: any SessionTask] = [:]
        var lastIdentifier = 0
    }

    let pool: TransferPool
    let settings: SessionSettings
    let delegate: SessionDelegate
    let trust: SessionTrust
    let paths: SessionPaths
    let connections: ConnectionWatches
    let plainAuthentication = PlainAuthentication()
    let threads = SessionThreads()
    private let state = Lock(State())
    // Every request reads the hooks often, from many threads. They therefore have their own lock, and `hasMonitors`
    // avoids it in the usual case, a session without monitors.
    private let currentHooks = Lock(Hooks())
    private let hasMonitors = Atomic(false)

    init(
        engine: TransferEngine,
        settings: SessionSettings,
        delegate: SessionDelegate,
        serverTrustPolicyManager: ServerTrustPolicyManager?,
        monitor: @escaping @Sendable () -> PathMonitor
    ) {
        let pool = TransferPool(engine: engine, connectionsPerHost: settings.connectionsPerHost)
        self.pool = pool
        self.settings = settings
        self.delegate = delegate
        trust = SessionTrust(serverTrustPolicyManager)
        paths = SessionPaths(monitor)
        connections = ConnectionWatches(
            paths,
            renew: { pool.renewConnections() },
            endUnanswered: { pool.endUnanswered(by: $0) }
        )
    }

    var engine: TransferEngine { pool.engine }

    /// The session, or `nil` once it has been released.
    var manager: SessionManager? {
        get { state.withLock { $0.manager } }
        set { state.withLock { $0.manager = newValue } }
    }

    var hooks: Hooks { currentHooks.withLock { $0 } }

    // Every request reads these two, and copying all hooks takes longer.
    var interceptor: (any RequestInterceptor)? { currentHooks.withLock { $0.interceptor } }
    var completionQueue: DispatchQueue { currentHooks.withLock { $0.completionQueue } }

    var monitors: [any EventMonitor] {
        hasMonitors.load(ordering: .acquiring) ? hooks.monitors : []
    }

    /// Whether sending a request may call the program's code.
    var mayRunUserCode: Bool { trust.runsUserCode || hasMonitors.load(ordering: .acquiring) }

    func changeHooks(_ change: (inout Hooks) -> Void) {
        // Release the replaced values outside the lock: that may run a deinit of the program.
        let replaced = currentHooks.withLock { hooks in
            let old = hooks
            change(&hooks)
            hasMonitors.store(!hooks.monitors.isEmpty, ordering: .releasing)
            return old
        }
        withExtendedLifetime(replaced) {}
    }

    // MARK: Running requests

    var running: [any SessionTask] { state.withLock { Array($0.running.values) } }

    /// The number of the most recently created request.
    var lastIdentifier: Int { state.withLock { $0.lastIdentifier } }

    /// Returns a number that is unique in the session.
    func nextIdentifier() -> Int {
        state.withLock { state in
            state.lastIdentifier += 1
            return state.lastIdentifier
        }
    }

    func add(_ task: any SessionTask) {
        state.withLock { $0.running[task.identifier] = task }
    }

    func remove(_ identifier: Int) {
        // Release the task outside the lock: that may run a deinit of the program, because the task may hold the last
        // reference to what its handlers captured.
        let removed = state.withLock { $0.running.removeValue(forKey: identifier) }
        withExtendedLifetime(removed) {}
    }
}

// MARK: Watched connections

extension SessionContext {
    /// The minimum time for which the paths of a session's connections are watched after its last request. The maximum
    /// is twice as long. After this time the connections are useless: libcurl does not reuse a connection that has been
    /// idle for 118 s (`CURLOPT_MAXAGE_CONN`).
    static let watchedIdleTime: Duration = .seconds(150)

    func recordConnection(to peer: ConnectionPeer) {
        if connections.record(peer) { scheduleWatchCheck(after: lastIdentifier) }
    }

    /// Ends the watches if no request is running and none was created after the request with the given number.
    /// Otherwise checks again later.
    func endUnusedWatches(since request: Int) {
        if running.isEmpty, lastIdentifier == request {
            connections.endAll()
        } else {
            scheduleWatchCheck(after: lastIdentifier)
        }
    }

    private func scheduleWatchCheck(after request: Int) {
        let deadline = DispatchTime.now() + Self.watchedIdleTime.inSeconds
        DispatchQueue.global(qos: .utility).asyncAfter(deadline: deadline) { [weak self] in
            self?.endUnusedWatches(since: request)
        }
    }
}
