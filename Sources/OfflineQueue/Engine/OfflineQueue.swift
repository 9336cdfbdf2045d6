internal import ClientCore
internal import Foundation
internal import NetwatchEventLoop

/// A queue that stores HTTP requests on disk until they are delivered.
///
/// ```swift
/// let queue = try await OfflineQueue(configuration: .init(directory: "/var/lib/myapp/queue"))
/// try await queue.start()
/// let receipt = try await queue.enqueue(
///     QueueRequest(method: "POST", url: "https://example.com/orders", body: Data(#"{"product":17}"#.utf8))
/// )
/// print(receipt.id)  // The request is on disk now.
/// await queue.stop()
/// ```
///
/// When ``enqueue(_:options:)`` returns, the request survives a crash and a power loss. The queue sends the request as
/// soon as its host is reachable. It repeats failed attempts with the same idempotency key until the request is
/// delivered or given up.
///
/// Only one process at a time can open a queue's directory. A queue runs until ``stop()``, which must be called.
///
/// All methods may be called from any task. No method blocks a thread of the cooperative pool.
public actor OfflineQueue {
    /// The stream that yields the error after which the queue no longer writes, if such an error occurs.
    ///
    /// The stream yields at most one error, and finishes when the queue stops. After the error, the process should exit
    /// and start again. Only one task may iterate over the stream.
    public nonisolated let failures: AsyncStream<QueueError>

    /// The stream of problems that an operator must know about, although the queue continues. Each is one sentence. It
    /// keeps the newest 16, and finishes when the queue stops. Only one task may iterate over it.
    package nonisolated let warnings: AsyncStream<String>

    enum Phase {
        case ready
        case running
        case stopped
    }

    var configuration: Configuration
    nonisolated let store: any QueueStore
    nonisolated let staged: StagedBodies<ContinuousClock>
    let sender: any AttemptSender
    nonisolated let credentials: CredentialResolver
    let gate: any HostGate
    let portals: (any PortalDetector)?
    private let failureContinuation: AsyncStream<QueueError>.Continuation
    private let warningContinuation: AsyncStream<String>.Continuation
    let origin = ContinuousClock.now

    private(set) var phase = Phase.ready
    /// Whether an error has ended the store, so that the queue no longer writes.
    private(set) var hasFailed = false
    /// Whether the disk was full when it was checked last; see ``QueueStatistics/isDiskFull``.
    package internal(set) var isDiskFull = false
    var scheduler: Scheduler
    var sendWaiters: [String: SendWaiter] = [:]
    var completionWaiters = CompletionWaiters()
    /// The handlers of ended requests by their tags.
    var tagHandlers: [String: TagHandler] = [:]
    var awaitedResponses: [String: AwaitedResponse] = [:]
    var inflight: [Int64: Inflight] = [:]
    /// The number of changes of each credential since the queue was opened.
    var credentialChanges: [String: Int] = [:]
    var claimsInProgress = 0
    /// The lanes that the scheduler has ordered to load, and the task that loads them.
    var lanesToLoad: [Int64] = []
    var loading: Task<Void, Never>?
    var watches: [Endpoint: EndpointWatch] = [:]
    /// The number of the last watch.
    var lastWatch: UInt64 = 0
    nonisolated let gateChanges = GateChanges()
    /// The latest probe for captive portals of each watched endpoint.
    var portalProbes: [Endpoint: Task<Void, Never>] = [:]
    var timer: (moment: Moment, task: Task<Void, Never>)?
    /// The task that drops the connections over the old path after a path change. Attempts start after it.
    var pathChange: Task<Void, Never>?
    var drain = Drain()
    /// The calls that wait for room in a full queue. Each change that may free room wakes them.
    nonisolated let capacityWaiters = ChangeWaiters()
    nonisolated let sweeper = Sweeper()
    nonisolated let scanner: StoreScanner
    /// The tasks that run from ``start()`` to ``stop()``.
    private var backgroundTasks: [Task<Void, Never>] = []
    /// The task that scans the store. It stores its place at its end, before the store is closed.
    private var scanning: Task<Void, Never>?

    /// Creates a queue and opens its directory. The queue sends nothing before ``start()``.
    ///
    /// - Throws: ``QueueError``: `invalidConfiguration`, `alreadyOwned` with the owner's process id,
    ///   `directoryUnusable`, `storeUnusable`, `storeUnavailable`, `storeFailed`.
    package init(
        configuration: Configuration,
        sender: any AttemptSender,
        gate: any HostGate,
        portals: (any PortalDetector)? = nil
    ) async throws {
        try configuration.check()
        let settings = StoreSettings(configuration)
        let store = try await SQLiteQueueStore(directory: configuration.directory, settings: settings)
        self.init(configuration: configuration, store: store, sender: sender, gate: gate, portals: portals)
        await scanner.load()
    }

    package init(
        configuration: Configuration,
        store: any QueueStore,
        sender: any AttemptSender,
        gate: any HostGate,
        portals: (any PortalDetector)? = nil,
        uploadStallTimeout: Duration = BodySpool.uploadStallTimeout
    ) {
        self.configuration = configuration.withOriginHosts
        self.store = store
        scanner = StoreScanner(store.archive, every: configuration.scanInterval, configuration.scanTiming)
        credentials = CredentialResolver(
            timeout: configuration.credentialTimeout,
            maximumWait: configuration.credentialWait
        )
        self.sender = CredentialSender(sender: sender, resolver: credentials)
        self.gate = gate
        self.portals = portals
        staged = StagedBodies(
            spool: store.spool,
            clock: ContinuousClock(),
            stallTimeout: uploadStallTimeout,
            onRelease: { [capacityWaiters] in capacityWaiters.changed() }
        )
        (failures, failureContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        (warnings, warningContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(16))
        let settings = Scheduler.Settings(configuration, checksPortals: portals != nil)
        scheduler = Scheduler(settings: settings, seed: UInt64.random(in: 0 ... .max))
    }
}

extension OfflineQueue {
    /// Notes about the opening of the store that an operator must know, such as a dropped commit: one sentence each.
    package nonisolated var openingNotes: [String] { store.openingNotes }

    /// The durations of the store's commits since the queue was opened.
    package nonisolated var commitDurations: DurationHistogram { store.commitDurations }
}

// MARK: - Events

extension OfflineQueue {
    /// The changes that are committed after this returns, in the order of their commits. Any number of consumers can
    /// read them.
    ///
    /// ```swift
    /// for await event in try await queue.events where event.kind == .dead {
    ///     print(event.requestID ?? "", event.reason ?? "")
    /// }
    /// ```
    ///
    /// The store reports every change of a row, whatever its cause is: an attempt, an edit, an expiry, an import, a
    /// dependency or a replacement. Events are delivered after their commit. A consumer that reads the states of the
    /// requests after it has obtained this sequence misses no change. Nothing is recorded while there is no consumer.
    ///
    /// An edit of a request in flight takes effect, and is reported, at the end of the attempt.
    ///
    /// - Throws: ``QueueError`` if the queue has stopped or its store has failed.
    public nonisolated var events: QueueEvents {
        get async throws { try await store.events() }
    }
}

// MARK: - Lifecycle

extension OfflineQueue {
    /// Recovers the requests of earlier runs and starts sending. Calls after the first one do nothing.
    ///
    /// - Throws: ``QueueError`` of the store.
    public func start() async throws {
        guard phase == .ready else { return }
        phase = .running
        await credentials.onAcceptance { [weak self] in await self?.credentialAccepted($0) }
        try await reporting {
            try await store.recover(releasing: HoldReason.releasableByRestart)
        }
        let others = try await reporting { try await announceAllBusy() }
        // `stop()` may have been called meanwhile.
        guard phase == .running else { return }
        if let others { backgroundTasks.append(others) }
        backgroundTasks += [
            Task { await self.followChanges() }, Task { await self.followGates() },
            Task { await self.sweep() },
            Task { await self.sweepSpool() }, Task { await self.reseal() }, Task { await self.watchStore() },
        ]
        scanning = Task { await self.scanStore() }
        for tag in tagHandlers.keys { startDelivery(of: tag) }
    }

    /// Tries waiting requests now, even if their lane is closed (by backoff or `Retry-After`) or their host is
    /// unreachable: without arguments all requests, otherwise those of some lanes.
    ///
    /// Requests that are held for ``HoldReason/trust``, ``HoldReason/configuration`` or ``HoldReason/auth`` are
    /// released. Other held requests, scheduled requests and paused lanes continue to wait. As soon as it has a slot,
    /// each lane sends one request. Further retries follow within the retry budget; see
    /// <doc:BeingAGoodCitizen#The-retry-budget>. The call does not wait for the attempts. If the queue is not running,
    /// the call does nothing and returns an empty array.
    ///
    /// - Parameters:
    ///   - host: The host of the lanes. Default `nil`: all hosts.
    ///   - lane: The label of the lanes. An empty label selects lanes without one. Default `nil`: all labels.
    /// - Returns: The lanes with requests that were opened before the end of a server's `Retry-After`, at most
    ///   ``QueueStatistics/maximumPausedLanes``.
    /// - Throws: ``QueueError``: `unknownLane` if a host or a label is given and no lane matches, in which case nothing
    ///   was changed; errors of the store.
    @discardableResult
    public func flush(host: String? = nil, lane: String? = nil) async throws -> [QueueStatistics.ClosedLane] {
        try await flush(LaneSelection(host: host, label: lane))
    }

    /// Tries the waiting requests of some lanes now, like ``flush(host:lane:)``.
    package func flush(_ selection: LaneSelection) async throws -> [QueueStatistics.ClosedLane] {
        guard phase == .running else { return [] }
        return try await reporting {
            let opened = try await store.reopen(selection, releasing: HoldReason.releasableByRestart)
            try await flushBusy(in: selection)
            return opened
        }
    }

    /// Stops the queue and releases its directory.
    ///
    /// No further attempt starts. Requests in flight may finish within ``Configuration/stopTimeout``; after that their
    /// attempts are cancelled and do not count. A request of which nothing was sent, or which may be sent twice, waits
    /// for the next start. Any other request is held for ``HoldReason/ambiguous``. The next start continues with all
    /// unfinished requests. Uploads that no request uses are removed.
    public func stop() async {
        guard phase != .stopped else { return }
        phase = .stopped
        handle(.stop)
        for watch in watches.values { watch.end() }
        for probe in portalProbes.values { probe.cancel() }
        for chore in backgroundTasks { chore.cancel() }
        scanning?.cancel()
        for tag in tagHandlers.values { tag.task?.cancel() }
        await drained(within: configuration.stopTimeout)
        for id in Array(sendWaiters.keys) { resolve(id, .queued(id: id, reason: .stopped)) }
        completionWaiters.wakeAll()
        let reason = "the queue stopped during the attempt"
        for sequence in inflight.keys { inflight[sequence]!.end(because: reason) }
        await drained(within: configuration.cancellationTimeout)
        await staged.removeAll()
        await scanning?.value
        await store.close()
        capacityWaiters.changed()
        failureContinuation.finish()
        warningContinuation.finish()
    }

    /// Runs an operation of the store. If its error ends the store, the queue stops sending.
    func reporting<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch {
            failed(error)
            throw error
        }
    }

    /// Reports a problem with which the queue continues.
    func warn(_ problem: String) { warningContinuation.yield(problem) }

    /// Stops sending if the error ends the store. Stored requests wait for the next start.
    func failed(_ error: any Error) {
        guard let error = error as? QueueError, error.endsStore, !hasFailed else { return }
        hasFailed = true
        failureContinuation.yield(error)
        handle(.stop)
        completionWaiters.wakeAll()
    }
}
