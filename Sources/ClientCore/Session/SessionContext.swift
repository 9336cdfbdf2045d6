internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport
internal import NetworkReachability
internal import Synchronization

/// What a session keeps until it has ended, and ends when the session is dropped.
protocol SessionWork: Sendable {
    /// Its number in its session.
    var identifier: Int { get }
    func sessionDropped()
}

/// What a session's requests share, and what outlives the session until the last of them has ended.
final class SessionContext: Sendable {
    /// What a program may set while requests are under way.
    struct Hooks: Sendable {
        var adapter: (any RequestAdapter)?
        var retrier: (any RequestRetrier)?
        var interceptor: (any RequestInterceptor)?
        /// Is asked when nobody else wants to try again; see ``SessionManager/waitsForConnectivity``.
        var connectivityRetrier: OfflineRetrier?
        var failedRequestOwner: (any FailedRequestOwner)?
        var monitors: [any EventMonitor] = []
        var options = RequestOptions()
        var startsImmediately = true
        var completionQueue = DispatchQueue.main
    }

    private struct State {
        weak var manager: SessionManager?
        var running: [Int: any SessionWork] = [:]
        var lastIdentifier = 0
    }

    let pool: TransferPool
    let settings: SessionSettings
    let delegate: SessionDelegate
    let trust: SessionTrust
    let paths: SessionPaths
    let connections: ConnectionWatches
    private let state = Mutex(State())
    // All requests of a session look at these again and again, from many threads: not under the lock that their
    // coming and going takes, and not under any for monitors that hardly a session has.
    private let currentHooks = Mutex(Hooks())
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
        connections = ConnectionWatches(paths) { pool.renewConnections() }
    }

    var engine: TransferEngine { pool.engine }

    /// The session, until its last reference goes.
    var manager: SessionManager? {
        get { state.withLock { $0.manager } }
        set { state.withLock { $0.manager = newValue } }
    }

    var hooks: Hooks { currentHooks.withLock { $0 } }

    var monitors: [any EventMonitor] {
        hasMonitors.load(ordering: .acquiring) ? hooks.monitors : []
    }

    /// Whether sending a request may call what the program has given.
    var mayCallProgram: Bool { trust.asksProgram || hasMonitors.load(ordering: .acquiring) }

    func changeHooks(_ change: (inout Hooks) -> Void) {
        // What is replaced goes outside the lock: it may be the last reference to anything.
        let replaced = currentHooks.withLock { hooks in
            let old = hooks
            change(&hooks)
            hasMonitors.store(!hooks.monitors.isEmpty, ordering: .releasing)
            return old
        }
        withExtendedLifetime(replaced) {}
    }

    // MARK: Requests that have not ended

    var running: [any SessionWork] { state.withLock { Array($0.running.values) } }

    /// The number of the request that was made last.
    var lastIdentifier: Int { state.withLock { $0.lastIdentifier } }

    /// Numbers are not used twice in a session.
    func nextIdentifier() -> Int {
        state.withLock { state in
            state.lastIdentifier += 1
            return state.lastIdentifier
        }
    }

    func add(_ work: any SessionWork) {
        state.withLock { $0.running[work.identifier] = work }
    }

    func remove(_ identifier: Int) {
        // Its last reference may go here, with whatever its handlers held.
        let removed = state.withLock { $0.running.removeValue(forKey: identifier) }
        withExtendedLifetime(removed) {}
    }
}
