internal import ClientCore
internal import Dispatch
internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Synchronization

/// The requests of one seed, all at the same time: whatever happens to them, each handler and each wait ends once,
/// and nothing is left of them.
final class LawRun: Sendable {
    static let requestCount = 12

    let seed: UInt64
    let world: LawWorld
    let breakage: LawOrders.Breakage?
    let ledger = LawLedger()
    let leftovers = LawLeftovers()
    /// Where handlers and progress are told.
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

    /// Every other seed has paths that come and go, the others servers that may not be trusted.
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

    // MARK: What a program does beside its requests

    /// Whether there is no way before all calls were made.
    private var isClosedThroughout: Bool { Self.isClosedThroughout(seed) }
    private static func isClosedThroughout(_ seed: UInt64) -> Bool { seed % 6 == 0 }

    /// Takes the way to the server away, or gives it back.
    func set(isOpen: Bool) {
        guard let paths, !isClosedThroughout else { return }
        paths.set(isOpen: isOpen)
        if !isOpen { lossCount.wrappingAdd(1, ordering: .relaxed) }
    }

    /// Names who is offered a request that fails: one that does this and that, or one that never answers.
    func nameOwner(of request: Request, isKeeper: Bool) {
        guard isKeeper else { return _ = request.offerFailure(to: hooks) }
        let keeper = LawKeeper(of: request, ledger) { [hooks] in
            hooks.withdrawn.wrappingAdd(1, ordering: .relaxed)
        }
        keepers.withLock { $0.append(keeper) }
        request.offerFailure(to: keeper)
    }

    // MARK: From beginning to end

    /// Returns what was wrong.
    func run() async -> [String] {
        await carryOut()
        apply(breakage)
        return ledger.violations + (await whatIsLeft { self.leftovers.objects + self.world.additions })
    }

    /// Everything but what is counted: by itself it opens what is opened once, which is no leak.
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
        // However slow this machine is, somebody is to wait for the way; there may be nobody who does.
        if isClosedThroughout, paths != nil {
            try? await hooks.offline.wait(patience: .milliseconds(250)) { !$0.isEmpty }
        }
        // Ends what stalls and what waits for the way, lets the retriers forget what they hold.
        paths?.set(isOpen: true)
        faults.release()
        hooks.forget()
        for keeper in keepers.withLock({ $0 }) { keeper.close() }
        await ledger.settle(patience: patience)
        await turn()
        for keeper in keepers.withLock({ $0 }) { keeper.forget() }
        // Its connections are closed with it, before descriptors are counted.
        dropSession()
        world.answer(with: nil)
        paths?.hangUp()
        leftovers.removeFiles()
        _ = await whatIsLeft { self.leftovers.objects }
    }

    /// A second call of a handler would stand behind the first.
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

    /// What has not gone by the end of all patience.
    ///
    /// Polls: nothing announces that an object of another module has gone or that a descriptor of the process is closed.
    private func whatIsLeft(_ look: () -> [String]) async -> [String] {
        let end = ContinuousClock.now + .milliseconds(patience)
        while ContinuousClock.now < end {
            if look().isEmpty { return [] }
            try? await Task.sleep(for: .microseconds(300))
        }
        return look()
    }
}
