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
    private let handlerCount = Atomic(0)
    private let requestCount = Atomic(0)

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
        if case .fault(let fault) = breakage { fault.strike(at: 2) }
        let session = SessionManager(engine: world.engine)
        session.failedRequestOwner = hooks
        session.startRequestsImmediately = seed % 4 != 0
        if seed % 3 != 0 { session.adapter = hooks }
        if seed % 5 != 0 { session.retrier = hooks }
        if seed % 2 != 0 { session.interceptor = hooks }
        return session
    }

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
        tally.waits = ledger.count - tally.handlers
        tally.retries = hooks.retries.load(ordering: .relaxed)
        tally.handOvers = hooks.finished.load(ordering: .relaxed)
        tally.withdrawals = hooks.withdrawn.load(ordering: .relaxed)
        tally.reports = ledger.reportCount
        return tally
    }

    func countRequest() { requestCount.wrappingAdd(1, ordering: .relaxed) }
    func countHandler() { handlerCount.wrappingAdd(1, ordering: .relaxed) }

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
        await withTaskGroup { group in
            for number in 0..<Self.requestCount {
                group.addTask {
                    var request = LawRequest(number, of: self)
                    await request.run()
                }
            }
        }
        // Ends what stalls, lets the retriers forget what they hold.
        faults.release()
        hooks.forget()
        await ledger.settle(patience: patience)
        await turn()
        // Its connections are closed with it, before descriptors are counted.
        dropSession()
        world.answer(with: nil)
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
    private func whatIsLeft(_ look: () -> [String]) async -> [String] {
        let end = ContinuousClock.now + .milliseconds(patience)
        while ContinuousClock.now < end {
            if look().isEmpty { return [] }
            try? await Task.sleep(for: .microseconds(300))
        }
        return look()
    }
}
