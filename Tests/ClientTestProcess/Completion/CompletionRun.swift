internal import ClientCore
internal import Dispatch
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Synchronization

/// One seed: all its requests, which run concurrently. Whatever happens to them, each handler must be called once, each
/// wait must end once, and nothing may leak.
final class CompletionRun: Sendable {
    static let requestCount = 12
    /// The number of additional requests for the seed's queue, if it has one.
    static let queuedCount = 4

    let seed: UInt64
    let environment: CompletionEnvironment
    let fault: CompletionOptions.Fault?
    let record: CompletionRecord
    let leftovers = LeakCheck()
    /// The queue of handlers and progress closures.
    let queue = DispatchQueue(label: "handlers")
    private let timeout: Int
    /// Where the seed's queue is stored; `nil` for a directory that is removed with the seed.
    private let store: CompletionStore?
    private let hooks: CompletionHooks
    private let faults: FaultyResponses
    private let currentSession: Lock<SessionManager?>
    private let currentBackgroundSession = Lock<SessionManager?>(nil)
    private let openedQueue = Lock<CompletionQueue?>(nil)
    private let retainingOwners = Lock<[RetainingOwner]>([])
    private let handlerCount = Atomic(0)
    private let waitCount = Atomic(0)
    private let requestCount = Atomic(0)
    private let lossCount = Atomic(0)
    private let storedCounts = Lock<[CompletionQueue.Way: Int]>([:])

    init(
        seed: UInt64,
        _ environment: CompletionEnvironment,
        _ fault: CompletionOptions.Fault?,
        timeout: Int,
        store: CompletionStore? = nil
    ) {
        record = CompletionRecord(journal: store?.journal)
        self.store = store
        self.seed = seed
        self.environment = environment
        self.fault = fault
        self.timeout = timeout
        hooks = CompletionHooks(seed: seed)
        faults = FaultyResponses(seed: seed)
        currentSession = Lock(Self.session(seed, environment, hooks, fault))
        if let session { leftovers.watch("session", session) }
        program.begin(self)
    }

    private static func session(
        _ seed: UInt64,
        _ environment: CompletionEnvironment,
        _ hooks: CompletionHooks,
        _ fault: CompletionOptions.Fault?
    ) -> SessionManager {
        if case .request(let fault) = fault { fault.inject(at: 1 + Int(seed % 3 % 2)) }
        let paths = Self.paths(seed, environment)
        let trust = try? environment.tls?.policies(seed / 2, hooks.program) { [weak hooks] in
            hooks?.evaluate() ?? false
        }
        let session = SessionManager(
            engine: paths?.engine ?? environment.engine,
            serverTrustPolicyManager: trust,
            monitor: paths?.monitor ?? .shared
        )
        session.failedRequestOwner = hooks
        session.eventMonitors = seed % 8 != 0 || isClosedThroughout(seed) ? [hooks] : []
        if seed % 4 < 2 { session.waitForConnectivity(CompletionHooks.pacing) }
        session.startRequestsImmediately = seed % 4 != 0
        // The hooks end most failures before a queue can take them over, so half of the seeds with a queue have none.
        if hasQueue(seed), seed % 8 == 1 { return session }
        if seed % 3 != 0 { session.adapter = hooks }
        if seed % 5 != 0 { session.retrier = hooks }
        if seed % 2 != 0 { session.interceptor = hooks }
        CompletionDelegate(seed: seed).setClosures(of: session.delegate, hooks.program)
        return session
    }

    /// The program's code in the hooks of this seed.
    var program: CompletionProgram { hooks.program }

    /// Even seeds have paths that come and go. Odd seeds have servers that may be untrusted.
    private static func paths(_ seed: UInt64, _ environment: CompletionEnvironment) -> CompletionPaths? {
        seed % 2 == 0 ? environment.paths : nil
    }

    var paths: CompletionPaths? { Self.paths(seed, environment) }

    /// The URL of the seed's server without TLS.
    var plainServer: String { paths?.server.url ?? environment.server.url }

    var session: SessionManager? { currentSession.withLock { $0 } }

    /// The session whose requests go to the seed's queue first; `nil` without a queue.
    var backgroundSession: SessionManager? { currentBackgroundSession.withLock { $0 } }

    func dropSessions() {
        // Released outside the locks.
        let dropped = (currentSession.withLock { $0.take() }, currentBackgroundSession.withLock { $0.take() })
        withExtendedLifetime(dropped) {}
    }

    var counts: CompletionCounts {
        var counts = CompletionCounts()
        counts.seeds = 1
        counts.requests = requestCount.load(ordering: .relaxed)
        counts.handlers = handlerCount.load(ordering: .relaxed)
        counts.waits = waitCount.load(ordering: .relaxed)
        counts.retries = hooks.retries.load(ordering: .relaxed)
        counts.finishedByOwner = hooks.finished.load(ordering: .relaxed)
        counts.withdrawals = hooks.withdrawn.load(ordering: .relaxed)
        let stored = storedCounts.withLock { $0 }
        counts.storedByRequest = stored[.request, default: 0]
        counts.storedBySession = stored[.session, default: 0]
        counts.storedInBackground = stored[.background, default: 0]
        counts.routeLosses = lossCount.load(ordering: .relaxed)
        counts.offline = hooks.offline.values.count
        counts.retriesAfterOffline = hooks.retriesAfterOffline.load(ordering: .relaxed)
        counts.refusals = hooks.refusals.load(ordering: .relaxed)
        counts.reports = record.reportCount
        (counts.hookCalls, counts.hookActions) = program.counts
        return counts
    }

    func countHandler() { handlerCount.wrappingAdd(1, ordering: .relaxed) }
    func countWait() { waitCount.wrappingAdd(1, ordering: .relaxed) }

    // MARK: Calls of the program besides its requests

    /// Whether the route stays missing from the start until all calls on the requests have been made.
    private var isClosedThroughout: Bool { Self.isClosedThroughout(seed) }
    private static func isClosedThroughout(_ seed: UInt64) -> Bool { seed % 6 == 0 }

    /// Adds or removes the route to the server.
    func set(isOpen: Bool) {
        guard let paths, !isClosedThroughout else { return }
        paths.set(isOpen: isOpen)
        if !isOpen { lossCount.wrappingAdd(1, ordering: .relaxed) }
    }

    /// Sets the owner that a request is offered to if it fails: a ``RetainingOwner``, which never answers, or the
    /// hooks, which act at random.
    func setOwner(of request: Request, isRetaining: Bool) {
        guard isRetaining else { return _ = request.offerFailure(to: hooks) }
        let keeper = RetainingOwner(of: request, record) { [hooks] in
            hooks.withdrawn.wrappingAdd(1, ordering: .relaxed)
        }
        retainingOwners.withLock { $0.append(keeper) }
        request.offerFailure(to: keeper)
    }

    /// Whether a seed has a queue. A quarter of the seeds has one.
    private static func hasQueue(_ seed: UInt64) -> Bool { seed % 4 == 1 }

    /// Whether the seed's queue is open.
    var hasQueue: Bool { openedQueue.withLock { $0 != nil } }

    /// How requests of the seed's session come into its queue.
    var way: CompletionQueue.Way { seed / 8 % 2 == 0 ? .request : .session }

    /// Lets the seed's queue, if it has one, take over the request if it fails. Has no effect if it takes over all
    /// failed requests of the session.
    func store(_ request: Request) {
        guard way == .request, let request = request as? DataRequest else { return }
        openedQueue.withLock { $0 }?.take(request)
    }

    /// Counts a new request, and watches its release. If the seed's queue stores the request, that is counted, too.
    func began(_ request: Request, _ number: Int, _ way: CompletionQueue.Way) {
        requestCount.wrappingAdd(1, ordering: .relaxed)
        leftovers.watch("request \(number)", request)
        program.add(request, number)
        guard let request = request as? DataRequest else { return }
        openedQueue.withLock { $0 }?.watch(request, number, way, program)
    }

    private func openQueue() async {
        do {
            let queue = try await CompletionQueue(seed: seed, in: store)
            openedQueue.withLock { $0 = queue }
            if way == .session, let session { queue.takeFailedRequests(of: session) }
            let background = queue.backgroundSession()
            leftovers.watch("background session", background)
            currentBackgroundSession.withLock { $0 = background }
        } catch {
            record.violated("the queue cannot be opened: \(error)")
        }
    }

    /// Stops the seed's queue, and leaves what it has stored to its next run, which never comes.
    func stopQueue() async {
        let queue = openedQueue.withLock { queue in
            defer { queue = nil }
            return queue
        }
        await queue?.stop()
        let stored = queue?.stored.withLock { $0 } ?? [:]
        storedCounts.withLock { $0.merge(stored, uniquingKeysWith: +) }
    }

    // MARK: Running

    /// Runs the seed and returns the violations.
    func run() async -> [String] {
        await carryOut()
        apply(fault)
        return record.violations
            + (await remainingObjects { self.leftovers.objects + self.environment.additions })
    }

    /// Runs everything except the final check for leaks. The first, unchecked seeds of a series call this function
    /// directly, because they open descriptors that stay open and are not leaks.
    func carryOut() async {
        environment.answer(with: faults)
        if Self.hasQueue(seed) { await openQueue() }
        if isClosedThroughout { paths?.set(isOpen: false) }
        await withTaskGroup { group in
            for number in 0..<Self.requestCount {
                group.addTask {
                    var request = CompletionRequest(number, of: self)
                    await request.run()
                }
            }
            guard hasQueue else { return }
            for number in Self.requestCount..<Self.requestCount + Self.queuedCount {
                group.addTask {
                    var request = CompletionRequest(number, of: self)
                    await request.runQueued()
                }
            }
        }
        // Waits until at least one request has failed offline, even on a slow machine. The wait is limited, because
        // there may be no such request.
        if isClosedThroughout, paths != nil {
            try? await hooks.offline.wait(timeout: .milliseconds(250)) { !$0.isEmpty }
        }
        // End the requests that stall or wait for the route, and release what the hooks and the owners retain.
        paths?.set(isOpen: true)
        faults.release()
        program.forget()
        // The requests of some seeds end in the queue, those of others are left to it. The wait is limited, because a
        // held request does not end.
        if hasQueue { await record.wait(milliseconds: [0, 20, 300][Int(seed / 4 % 3)]) }
        await stopQueue()
        for keeper in retainingOwners.withLock({ $0 }) { keeper.close() }
        // From now on the hooks add no expected completion, because the wait must know all of them.
        program.close()
        await record.settle(timeout: timeout)
        await turn()
        for keeper in retainingOwners.withLock({ $0 }) { keeper.forget() }
        // Close the sessions' connections before descriptors are counted.
        dropSessions()
        environment.answer(with: nil)
        paths?.hangUp()
        leftovers.removeFiles()
        _ = await remainingObjects { self.leftovers.objects }
    }

    /// Waits for a turn of the handlers' queue. An erroneous second call of a handler has been made by then.
    private func turn() async {
        await withCheckedContinuation { done in queue.async { done.resume() } }
    }

    private func apply(_ fault: CompletionOptions.Fault?) {
        switch fault {
        case .opensDescriptor: _ = open("/dev/null", O_RDONLY | O_CLOEXEC)
        case .leavesFile: environment.leaveTemporaryFile()
        case .swapsHandlers: record.swapHandlers()
        case .reversesProgress:
            let progress = Progress(totalUnitCount: 2)
            for count in [2, 1] as [Int64] {
                progress.completedUnitCount = count
                record.note(progress, of: "the progress")
            }
        case .request, nil: break
        }
    }

    /// Waits until `look` finds nothing, or until the timeout has passed, and returns what is still left.
    ///
    /// This function polls, because no event announces that an object of another module was released or that a
    /// descriptor was closed.
    private func remainingObjects(_ look: () -> [String]) async -> [String] {
        let end = ContinuousClock.now + .milliseconds(timeout)
        while ContinuousClock.now < end {
            if look().isEmpty { return [] }
            try? await Task.sleep(for: .microseconds(300))
        }
        return look()
    }
}
