internal import ClientCore
internal import Dispatch
internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Synchronization

/// All requests of one seed, run concurrently. Whatever happens to them, each handler and each wait ends once, and
/// nothing leaks.
final class CompletionRun: Sendable {
    static let requestCount = 12

    let seed: UInt64
    let environment: CompletionEnvironment
    let fault: CompletionOptions.Fault?
    let record = CompletionRecord()
    let leftovers = LeakCheck()
    /// The queue of handlers and progress closures.
    let queue = DispatchQueue(label: "handlers")
    private let timeout: Int
    private let hooks: CompletionHooks
    private let faults: FaultyResponses
    private let currentSession: Mutex<SessionManager?>
    private let retainingOwners = Mutex<[RetainingOwner]>([])
    private let handlerCount = Atomic(0)
    private let waitCount = Atomic(0)
    private let requestCount = Atomic(0)
    private let lossCount = Atomic(0)

    init(seed: UInt64, _ environment: CompletionEnvironment, _ fault: CompletionOptions.Fault?, timeout: Int)
    {
        self.seed = seed
        self.environment = environment
        self.fault = fault
        self.timeout = timeout
        hooks = CompletionHooks(seed: seed)
        faults = FaultyResponses(seed: seed)
        currentSession = Mutex(Self.session(seed, environment, hooks, fault))
        if let session { leftovers.watch("session", session) }
    }

    private static func session(
        _ seed: UInt64,
        _ environment: CompletionEnvironment,
        _ hooks: CompletionHooks,
        _ fault: CompletionOptions.Fault?
    ) -> SessionManager {
        if case .request(let fault) = fault { fault.inject(at: 1 + Int(seed % 3 % 2)) }
        let paths = Self.paths(seed, environment)
        let trust = try? environment.tls?.policies(seed / 2) { [weak hooks] in hooks?.trusts ?? false }
        let session = SessionManager(
            engine: paths?.engine ?? environment.engine,
            serverTrustPolicyManager: trust,
            monitor: paths?.monitor ?? .shared
        )
        session.failedRequestOwner = hooks
        session.eventMonitors = seed % 8 != 0 || isClosedThroughout(seed) ? [hooks] : []
        if seed % 4 < 2 { session.waitForConnectivity(CompletionHooks.pacing) }
        session.startRequestsImmediately = seed % 4 != 0
        if seed % 3 != 0 { session.adapter = hooks }
        if seed % 5 != 0 { session.retrier = hooks }
        if seed % 2 != 0 { session.interceptor = hooks }
        return session
    }

    /// Even seeds have paths that come and go. Odd seeds have servers that may be untrusted.
    private static func paths(_ seed: UInt64, _ environment: CompletionEnvironment) -> CompletionPaths? {
        seed % 2 == 0 ? environment.paths : nil
    }

    var paths: CompletionPaths? { Self.paths(seed, environment) }

    var session: SessionManager? { currentSession.withLock { $0 } }

    func dropSession() {
        let dropped = currentSession.withLock { session in
            defer { session = nil }
            return session
        }
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
        counts.routeLosses = lossCount.load(ordering: .relaxed)
        counts.offline = hooks.offline.values.count
        counts.retriesAfterOffline = hooks.retriesAfterOffline.load(ordering: .relaxed)
        counts.refusals = hooks.refusals.load(ordering: .relaxed)
        counts.reports = record.reportCount
        return counts
    }

    func countRequest() { requestCount.wrappingAdd(1, ordering: .relaxed) }
    func countHandler() { handlerCount.wrappingAdd(1, ordering: .relaxed) }
    func countWait() { waitCount.wrappingAdd(1, ordering: .relaxed) }

    // MARK: Calls of the program besides its requests

    /// Whether the route is missing until all calls were made.
    private var isClosedThroughout: Bool { Self.isClosedThroughout(seed) }
    private static func isClosedThroughout(_ seed: UInt64) -> Bool { seed % 6 == 0 }

    /// Adds or removes the route to the server.
    func set(isOpen: Bool) {
        guard let paths, !isClosedThroughout else { return }
        paths.set(isOpen: isOpen)
        if !isOpen { lossCount.wrappingAdd(1, ordering: .relaxed) }
    }

    /// Sets the owner of a failed request: the hooks, which act at random, or a keeper, which never answers.
    func setOwner(of request: Request, isRetaining: Bool) {
        guard isRetaining else { return _ = request.offerFailure(to: hooks) }
        let keeper = RetainingOwner(of: request, record) { [hooks] in
            hooks.withdrawn.wrappingAdd(1, ordering: .relaxed)
        }
        retainingOwners.withLock { $0.append(keeper) }
        request.offerFailure(to: keeper)
    }

    // MARK: Running

    /// Runs the seed and returns the violations.
    func run() async -> [String] {
        await carryOut()
        apply(fault)
        return record.violations
            + (await remainingObjects { self.leftovers.objects + self.environment.additions })
    }

    /// Runs everything except the final check for leaks. A warmUpURL calls this directly, because it opens
    /// descriptors that stay open and are not leaks.
    func carryOut() async {
        environment.answer(with: faults)
        if isClosedThroughout { paths?.set(isOpen: false) }
        await withTaskGroup { group in
            for number in 0..<Self.requestCount {
                group.addTask {
                    var request = CompletionRequest(number, of: self)
                    await request.run()
                }
            }
        }
        // Even on a slow machine, at least one request should fail offline. There may be none, so the wait is
        // limited.
        if isClosedThroughout, paths != nil {
            try? await hooks.offline.wait(timeout: .milliseconds(250)) { !$0.isEmpty }
        }
        // End the requests that stall or wait for the route, and release what the hooks retain.
        paths?.set(isOpen: true)
        faults.release()
        hooks.forget()
        for keeper in retainingOwners.withLock({ $0 }) { keeper.close() }
        await record.settle(timeout: timeout)
        await turn()
        for keeper in retainingOwners.withLock({ $0 }) { keeper.forget() }
        // This closes the session's connections before descriptors are counted.
        dropSession()
        environment.answer(with: nil)
        paths?.hangUp()
        leftovers.removeFiles()
        _ = await remainingObjects { self.leftovers.objects }
    }

    /// Waits for the handler queue, so that a second call of a handler has run as well.
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

    /// Returns what is still left when nothing is left or the timeout has expired.
    ///
    /// Polls, because nothing announces that an object of another module is released or that a descriptor of the
    /// process is closed.
    private func remainingObjects(_ look: () -> [String]) async -> [String] {
        let end = ContinuousClock.now + .milliseconds(timeout)
        while ContinuousClock.now < end {
            if look().isEmpty { return [] }
            try? await Task.sleep(for: .microseconds(300))
        }
        return look()
    }
}
