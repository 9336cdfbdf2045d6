internal import ClientCore
internal import Dispatch
internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Synchronization

/// All requests of one seed, run concurrently. Whatever happens to them, each handler and each wait ends once, and
/// nothing leaks.
final class LawRun: Sendable {
    static let requestCount = 12

    let seed: UInt64
    let world: LawWorld
    let breakage: LawOrders.Breakage?
    let ledger = LawLedger()
    let leftovers = LawLeftovers()
    /// The queue of handlers and progress closures.
    let queue = DispatchQueue(label: "handlers")
    private let patience: Int
    private let hooks: LawHooks
    private let faults: LawFaults
    private let currentSession: Mutex<SessionManager?>
    private let keepers = Mutex<[LawKeeper]>([])
    private let handlerCount = Atomic(0)
    private let waitCount = Atomic(0)
    private let requestCount = Atomic(0)
    private let lossCount = Atomic(0)

    init(seed: UInt64, _ world: LawWorld, _ breakage: LawOrders.Breakage?, patience: Int) {
        self.seed = seed
        self.world = world
        self.breakage = breakage
        self.patience = patience
        hooks = LawHooks(seed: seed)
        faults = LawFaults(seed: seed)
        currentSession = Mutex(Self.session(seed, world, hooks, breakage))
        if let session { leftovers.watch("session", session) }
    }

    private static func session(
        _ seed: UInt64,
        _ world: LawWorld,
        _ hooks: LawHooks,
        _ breakage: LawOrders.Breakage?
    ) -> SessionManager {
        if case .fault(let fault) = breakage { fault.strike(at: 1 + Int(seed % 3 % 2)) }
        let paths = Self.paths(seed, world)
        let trust = try? world.tls?.policies(seed / 2) { [weak hooks] in hooks?.trusts ?? false }
        let session = SessionManager(
            engine: paths?.engine ?? world.engine,
            serverTrustPolicyManager: trust,
            monitor: paths?.monitor ?? .shared
        )
        session.failedRequestOwner = hooks
        session.eventMonitors = seed % 8 != 0 || isClosedThroughout(seed) ? [hooks] : []
        if seed % 4 < 2 { session.waitForConnectivity(LawHooks.pacing) }
        session.startRequestsImmediately = seed % 4 != 0
        if seed % 3 != 0 { session.adapter = hooks }
        if seed % 5 != 0 { session.retrier = hooks }
        if seed % 2 != 0 { session.interceptor = hooks }
        return session
    }

    /// Even seeds have paths that come and go. Odd seeds have servers that may be untrusted.
    private static func paths(_ seed: UInt64, _ world: LawWorld) -> LawPaths? {
        seed % 2 == 0 ? world.paths : nil
    }

    var paths: LawPaths? { Self.paths(seed, world) }

    var session: SessionManager? { currentSession.withLock { $0 } }

    func dropSession() {
        let dropped = currentSession.withLock { session in
            defer { session = nil }
            return session
        }
        withExtendedLifetime(dropped) {}
    }

    var tally: LawTally {
        var tally = LawTally()
        tally.seeds = 1
        tally.requests = requestCount.load(ordering: .relaxed)
        tally.handlers = handlerCount.load(ordering: .relaxed)
        tally.waits = waitCount.load(ordering: .relaxed)
        tally.retries = hooks.retries.load(ordering: .relaxed)
        tally.handOvers = hooks.finished.load(ordering: .relaxed)
        tally.withdrawals = hooks.withdrawn.load(ordering: .relaxed)
        tally.losses = lossCount.load(ordering: .relaxed)
        tally.offline = hooks.offline.values.count
        tally.awakenings = hooks.awakenings.load(ordering: .relaxed)
        tally.refusals = hooks.refusals.load(ordering: .relaxed)
        tally.reports = ledger.reportCount
        return tally
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
    func nameOwner(of request: Request, isKeeper: Bool) {
        guard isKeeper else { return _ = request.offerFailure(to: hooks) }
        let keeper = LawKeeper(of: request, ledger) { [hooks] in
            hooks.withdrawn.wrappingAdd(1, ordering: .relaxed)
        }
        keepers.withLock { $0.append(keeper) }
        request.offerFailure(to: keeper)
    }

    // MARK: Running

    /// Runs the seed and returns the violations.
    func run() async -> [String] {
        await carryOut()
        apply(breakage)
        return ledger.violations + (await whatIsLeft { self.leftovers.objects + self.world.additions })
    }

    /// Runs everything except the final check for leaks. A rehearsal calls this directly, because it opens
    /// descriptors that stay open and are not leaks.
    func carryOut() async {
        world.answer(with: faults)
        if isClosedThroughout { paths?.set(isOpen: false) }
        await withTaskGroup { group in
            for number in 0..<Self.requestCount {
                group.addTask {
                    var request = LawRequest(number, of: self)
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
        for keeper in keepers.withLock({ $0 }) { keeper.close() }
        await ledger.settle(patience: patience)
        await turn()
        for keeper in keepers.withLock({ $0 }) { keeper.forget() }
        // This closes the session's connections before descriptors are counted.
        dropSession()
        world.answer(with: nil)
        paths?.hangUp()
        leftovers.removeFiles()
        _ = await whatIsLeft { self.leftovers.objects }
    }

    /// Waits for the handler queue, so that a second call of a handler has run as well.
    private func turn() async {
        await withCheckedContinuation { done in queue.async { done.resume() } }
    }

    private func apply(_ breakage: LawOrders.Breakage?) {
        switch breakage {
        case .opensDescriptor: _ = open("/dev/null", O_RDONLY | O_CLOEXEC)
        case .leavesFile: world.leaveTemporaryFile()
        case .swapsHandlers: ledger.swapHandlers()
        case .reversesProgress:
            let progress = Progress(totalUnitCount: 2)
            for count in [2, 1] as [Int64] {
                progress.completedUnitCount = count
                ledger.note(progress, of: "a progress")
            }
        case .fault, nil: break
        }
    }

    /// Returns what is still left when nothing is left or the timeout has expired.
    ///
    /// Polls, because nothing announces that an object of another module is released or that a descriptor of the
    /// process is closed.
    private func whatIsLeft(_ look: () -> [String]) async -> [String] {
        let end = ContinuousClock.now + .milliseconds(patience)
        while ContinuousClock.now < end {
            if look().isEmpty { return [] }
            try? await Task.sleep(for: .microseconds(300))
        }
        return look()
    }
}
