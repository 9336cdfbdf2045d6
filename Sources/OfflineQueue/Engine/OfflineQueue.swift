internal import Foundation

/// A queue that stores HTTP requests on disk until they are delivered.
///
/// When ``enqueue(_:options:)`` returns, the request survives a crash and a power loss. The queue sends it at least
/// once, as soon as its host is reachable, with the same idempotency key in every attempt. One process owns a queue's
/// directory. A queue runs until ``stop()``, which must be called.
///
/// No method blocks a thread of the cooperative pool. All methods may be called from any task.
public actor OfflineQueue {
    /// The settings of a queue.
    public struct Configuration: Hashable, Sendable {
        /// The directory of the queue. It and its missing parents are created with permissions 0700. An existing
        /// directory that others can access is restricted to 0700 if it is empty or holds a queue, and refused
        /// otherwise.
        public var directory: String
        /// The size limits of the queue.
        public var limits = QueueLimits()
        /// The minimum delay after a failure: 1 ms to 366 days. Default 2 s. The actual delay is random between this
        /// and an upper bound that doubles with each failure in a row.
        public var backoffBase: Duration = Backoff.defaultBase
        /// The maximum delay after failures, and the interval at which an unreachable host is tried all the same:
        /// ``backoffBase`` to 366 days. Default 15 min. A server's `Retry-After` may close a lane for up to 24 h.
        public var backoffCap: Duration = Backoff.defaultCap
        /// The maximum number of requests in flight per lane: 1 to 65,536. Default 8. A FIFO lane sends 1 at a time,
        /// and ``inflightPerOrigin`` limits all lanes of an origin together.
        public var inflightPerLane = 8
        /// The maximum number of requests in flight per origin (scheme, host and port), over all its lanes: 1 to
        /// 65,536. Default 8.
        public var inflightPerOrigin = 8
        /// The maximum number of requests in flight: 1 to 65,536. Default 32. A quarter of these slots is reserved for
        /// origins with nothing in flight; at least one slot is reserved if there are two or more.
        public var inflight = 32
        /// How long ``OfflineQueue/stop()`` waits for requests in flight: 0 s to 366 days. Default 10 s.
        public var stopTimeout: Duration = .seconds(10)

        /// Creates a configuration with the defaults.
        public init(directory: String) {
            self.directory = directory
        }
    }

    /// Yields the error after which the queue no longer writes, if one occurs, and finishes when the queue stops.
    /// After the error, the process should exit and start again. Supports one consumer at a time.
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
    /// Whether the queue no longer writes.
    var hasFailed = false
    var scheduler: Scheduler
    var sendWaiters: [String: SendWaiter] = [:]
    var completionWaiters: [String: [Int: CompletionWaiter]] = [:]
    var completionTimer: CompletionTimer?
    /// The ids of requests with waiters that may have finished.
    var completionCandidates: Set<String> = []
    var isCheckingCompletions = false
    var nextWaiter = 0
    var inflight: [Int64: Inflight] = [:]
    var claimsInProgress = 0
    var watches: [String: Task<Void, Never>] = [:]
    var timer: (moment: Moment, task: Task<Void, Never>)?
    /// No attempt starts before the connections of the old path are dropped.
    var pathChange: Task<Void, Never>?
    var drain = Drain()
    nonisolated let capacityWaiters = CapacityWaiters()
    nonisolated let sweeper = Sweeper()
    /// The tasks that run for as long as the queue.
    var backgroundTasks: [Task<Void, Never>] = []

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
        uploadStallTimeout: Duration = .seconds(10)
    ) {
        self.configuration = configuration
        self.store = store
        self.sender = sender
        self.gate = gate
        staged = StagedBodies(
            spool: store.spool,
            clock: ContinuousClock(),
            stallTimeout: uploadStallTimeout,
            onRelease: { [capacityWaiters] in capacityWaiters.changed() }
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
    /// Findings from opening the queue that its owner must know, one sentence each.
    package nonisolated var openingNotes: [String] { store.openingNotes }
}

// MARK: - Lifecycle

extension OfflineQueue {
    /// Recovers the requests of earlier runs and starts sending. A second call does nothing.
    ///
    /// - Throws: ``QueueError`` of the store.
    public func start() async throws {
        guard phase == .ready else { return }
        phase = .running
        try await reporting {
            let lanes = try await store.recover(releasing: HoldReason.releasableByRestart)
            announce(lanes)
        }
        backgroundTasks = [
            Task { await self.followChanges() }, Task { await self.sweep() },
            Task { await self.keepLeases() },
            Task { await self.sweepSpool() }, Task { await self.watchStore() },
        ]
    }

    /// Tries all waiting requests now. It ignores backoff, `Retry-After` and unreachable hosts once, and releases
    /// requests that are held for trust, configuration or credentials. Paused, user-held and scheduled requests keep
    /// waiting. Returns before the attempts end.
    ///
    /// - Throws: ``QueueError`` of the store.
    public func flush() async throws {
        guard phase == .running else { return }
        try await reporting {
            let lanes = try await store.reopen(releasing: HoldReason.releasableByRestart)
            announce(lanes)
            handle(.flush)
        }
    }

    /// Stops the queue and releases its directory. No new request is sent. Requests in flight may finish within
    /// ``Configuration/stopTimeout``; the next start handles the rest.
    public func stop() async {
        guard phase != .stopped else { return }
        phase = .stopped
        handle(.stop)
        for watch in watches.values { watch.cancel() }
        for chore in backgroundTasks { chore.cancel() }
        await drained(within: configuration.stopTimeout)
        for id in Array(sendWaiters.keys) { resolve(id, .queued(id: id, reason: .stopped)) }
        wakeCompletionWaiters()
        for attempt in inflight.values { attempt.transfer.cancel() }
        await staged.removeAll()
        await store.close()
        capacityWaiters.changed()
        failureContinuation.finish()
    }

    /// Runs the body and reports an error after which the queue no longer writes.
    func reporting<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch {
            failed(error)
            throw error
        }
    }

    /// Stops sending if the error ends the store. Stored requests wait for the next start.
    func failed(_ error: any Error) {
        guard let error = error as? QueueError, error.endsStore, !hasFailed else { return }
        hasFailed = true
        failureContinuation.yield(error)
        handle(.stop)
        wakeCompletionWaiters()
    }
}
