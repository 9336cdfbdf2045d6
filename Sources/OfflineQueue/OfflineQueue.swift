internal import Foundation

/// Keeps HTTP requests on the disk until they are delivered.
///
/// When ``enqueue(_:options:)`` returns, the request survives a crash and a power cut. It is sent at least
/// once, with the same idempotency key every time, as soon as its host can be reached. One process owns
/// a queue's directory. A queue lives until ``stop()``, which is to be called.
///
/// Nothing here blocks a thread of the cooperative pool; all methods may be called from any task.
public actor OfflineQueue {
    /// How a queue works.
    public struct Configuration: Hashable, Sendable {
        /// Where the queue is kept; made with permissions 0700 when missing, as is what is missing above it. One
        /// that exists and is open to others is closed to them when it is empty or a queue's, else refused.
        public var directory: String
        /// How much the queue takes.
        public var limits = QueueLimits()
        /// The shortest wait after a failure. The longest, of which chance takes a part, doubles with every further
        /// one. Default 2 s; 1 ms to 366 days.
        public var backoffBase: Duration = .seconds(2)
        /// The longest wait after failures, and how often an unreachable host is tried all the same.
        /// Default 15 min; ``backoffBase`` to 366 days. (A server's `Retry-After` may close a lane for up to 24 h.)
        public var backoffCap: Duration = .seconds(900)
        /// Requests of one lane that are sent at once. Default 8; 1 to 65,536. A lane in order sends 1, and
        /// ``inflightPerOrigin`` limits all lanes to an origin together.
        public var inflightPerLane = 8
        /// Requests to one origin (scheme, host and port) that are sent at once, over all its lanes. Default 8;
        /// 1 to 65,536.
        public var inflightPerOrigin = 8
        /// Requests that are sent at once. Default 32; 1 to 65,536. A quarter of these slots, and at least one of two
        /// or more, is reserved for origins to which nothing is being sent.
        public var inflight = 32
        /// How long ``OfflineQueue/stop()`` waits for what is being sent. Default 10 s; 0 s to 366 days.
        public var stopTimeout: Duration = .seconds(10)

        /// The defaults, in a directory.
        public init(directory: String) {
            self.directory = directory
        }
    }

    /// Yields the error after which the queue writes nothing any more, if that happens, and ends with the
    /// queue. Whoever runs the queue should end then and start anew. One consumer at a time.
    public nonisolated let failures: AsyncStream<QueueError>

    enum Phase {
        case ready
        case running
        case stopped
    }

    nonisolated let configuration: Configuration
    nonisolated let store: any QueueStore
    nonisolated let staged: StagedBodies<ContinuousClock>
    let sender: any AttemptSender
    let gate: any HostGate
    let failureContinuation: AsyncStream<QueueError>.Continuation
    let origin = ContinuousClock.now

    var phase = Phase.ready
    /// Whether nothing is written any more.
    var hasFailed = false
    var scheduler: Scheduler
    var waiters: [String: Waiter] = [:]
    var endWaiters: [String: [Int: EndWaiter]] = [:]
    var endTimer: EndTimer?
    /// Requests with waiters that may be over.
    var endCandidates: Set<String> = []
    var isCheckingEnds = false
    var nextWaiter = 0
    var inflight: [Int64: Inflight] = [:]
    var claimsUnderWay = 0
    var watches: [String: Task<Void, Never>] = [:]
    var timer: (moment: Moment, task: Task<Void, Never>)?
    /// No attempt begins before connections of an old path are dropped.
    var pathChange: Task<Void, Never>?
    var drain = Drain()
    nonisolated let room = Room()
    nonisolated let sweeper = Sweeper()
    /// What goes on for as long as the queue runs.
    var chores: [Task<Void, Never>] = []

    /// Opens the queue's directory. Nothing is sent before ``start()``.
    ///
    /// - Throws: ``QueueError``: `invalidConfiguration`, `alreadyOwned` with the owner's process id,
    ///   `directoryUnusable`, `storeUnusable`, `storeUnavailable`, `storeFailed`.
    package init(
        configuration: Configuration,
        sender: any AttemptSender,
        gate: any HostGate
    ) async throws {
        try configuration.check()
        var settings = StoreSettings()
        settings.limits = configuration.limits
        settings.longestDelay = configuration.backoffCap
        let store = try await SQLiteQueueStore(directory: configuration.directory, settings: settings)
        self.init(configuration: configuration, store: store, sender: sender, gate: gate)
    }

    package init(
        configuration: Configuration,
        store: any QueueStore,
        sender: any AttemptSender,
        gate: any HostGate,
        uploadStall: Duration = .seconds(10)
    ) {
        self.configuration = configuration
        self.store = store
        self.sender = sender
        self.gate = gate
        staged = StagedBodies(
            spool: store.spool,
            clock: ContinuousClock(),
            stall: uploadStall,
            onRelease: { [room] in room.changed() }
        )
        (failures, failureContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        var settings = Scheduler.Settings()
        settings.backoff = Backoff(base: configuration.backoffBase, cap: configuration.backoffCap)
        settings.inflightPerLane = configuration.inflightPerLane
        settings.inflightPerOrigin = configuration.inflightPerOrigin
        settings.inflight = configuration.inflight
        scheduler = Scheduler(settings: settings, seed: UInt64.random(in: 0 ... .max))
    }
}

extension OfflineQueue {
    /// What opening the queue found that its owner has to know, one sentence each.
    package nonisolated var openingNotes: [String] { store.openingNotes }
}

// MARK: - Life

extension OfflineQueue {
    /// Takes up what earlier runs left and begins to send. Calling it again does nothing.
    ///
    /// - Throws: ``QueueError`` of the store.
    public func start() async throws {
        guard phase == .ready else { return }
        phase = .running
        try await reporting {
            let lanes = try await store.recover(releasing: HoldReason.mendable)
            announce(lanes)
        }
        chores = [
            Task { await self.followChanges() }, Task { await self.sweep() },
            Task { await self.keepLeases() },
            Task { await self.sweepSpool() }, Task { await self.watchStore() },
        ]
    }

    /// Tries everything that waits now: backoff, `Retry-After` and the gate are passed over once, and what
    /// is held for trust, configuration or credentials is tried again. What is paused, held by somebody or
    /// scheduled stays so. Returns before the attempts end.
    ///
    /// - Throws: ``QueueError`` of the store.
    public func flush() async throws {
        guard phase == .running else { return }
        try await reporting {
            let lanes = try await store.reopen(releasing: HoldReason.mendable)
            announce(lanes)
            handle(.flush)
        }
    }

    /// Ends the queue: nothing new is sent, what is being sent is waited for up to
    /// ``Configuration/stopTimeout`` and then left to the next start, and the directory is given up.
    public func stop() async {
        guard phase != .stopped else { return }
        phase = .stopped
        handle(.stop)
        for watch in watches.values { watch.cancel() }
        for chore in chores { chore.cancel() }
        await drained(within: configuration.stopTimeout)
        for id in Array(waiters.keys) { answer(id, .queued(id: id, reason: .stopped)) }
        wakeEndWaiters()
        for attempt in inflight.values { attempt.transfer.cancel() }
        await staged.removeAll()
        await store.close()
        room.changed()
        failureContinuation.finish()
    }

    /// Tells of an error after which nothing is written any more.
    func reporting<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch {
            failed(error)
            throw error
        }
    }

    /// Nothing is written any more; what is on the disk waits for the next start.
    func failed(_ error: any Error) {
        guard let error = error as? QueueError, error.endsStore, !hasFailed else { return }
        hasFailed = true
        failureContinuation.yield(error)
        handle(.stop)
        wakeEndWaiters()
    }
}
