package import ClientCore
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
    /// The settings of a queue.
    ///
    /// ```swift
    /// var configuration = OfflineQueue.Configuration(directory: "/var/lib/myapp/queue")
    /// configuration.limits.bytes = 256 << 20
    /// configuration.rates = [try RateLimit(10, to: "api.example.com")]
    /// let queue = try await OfflineQueue(configuration: configuration)
    /// ```
    public struct Configuration: Hashable, Sendable {
        /// The path of the queue's directory.
        ///
        /// The directory and its missing parents are created with the permissions 0700. If other users can access an
        /// existing directory, its permissions are changed to 0700, provided that it is empty or contains a queue. Any
        /// other directory that they can access is refused.
        public var directory: String
        /// The size limits of the queue.
        public var limits = QueueLimits()
        /// The minimum delay after a failure: 1 ms to 366 days. Default 2 s.
        ///
        /// The actual delay is random, between this minimum and an upper bound. The bound doubles with each failure in
        /// a row, up to ``backoffCap``.
        public var backoffBase: Duration = Backoff.defaultBase
        /// The maximum delay after failures: ``backoffBase`` to 366 days. Default 15 min.
        ///
        /// The queue also tries an unreachable host at this interval, in case the path monitor is wrong. A server's
        /// `Retry-After` may close a lane for longer, up to 24 h.
        public var backoffCap: Duration = Backoff.defaultCap
        /// The maximum number of requests in flight in each parallel lane: 1 to 65,536. Default 8. A FIFO lane sends
        /// one request at a time.
        public var inflightPerLane = 8
        /// The maximum number of requests in flight to each origin (scheme, host and port), in all its lanes together:
        /// 1 to 65,536. Default 8. After signs of overload, the queue sends fewer at a time.
        public var inflightPerOrigin = 8
        /// The maximum number of requests in flight in the whole queue: 1 to 65,536. Default 32. After an outage, the
        /// limit is lower at first; see <doc:BeingAGoodCitizen>.
        ///
        /// If the maximum is 2 or more, a quarter of it, but at least 1, is reserved for origins that have no request
        /// in flight.
        public var inflight = 32
        /// The maximum of a random delay before the first requests after an outage, and after the start of the queue:
        /// 0 s to 366 days. Default 0 s, which means no delay.
        ///
        /// If many machines lose the same network, or restart after the same power failure, each of them waits for a
        /// time between 0 s and this maximum. Their requests then do not arrive all at once.
        /// ``OfflineQueue/flush(host:lane:)`` ends the delay. While requests wait for it, their reason is
        /// ``QueuedReason/paced``.
        public var reconnectSpread: Duration = .zero
        /// The URL with which paths are probed for captive portals. Default `nil`: no probes.
        ///
        /// The URL must be an `http` URL to which the server always responds with 204, or with 200 and no body. You can
        /// use a server of your own. A portal sends another response; see `CaptivePortalProbe` in ClientCore.
        ///
        /// Before the queue sends the first request over plain HTTP to a host, and again after each change of the path
        /// to the host, it requests this URL over the same path. While a portal responds, requests over plain HTTP to
        /// the host wait with the reason ``QueuedReason/captivePortal(page:)``, and use up no attempts. The path is
        /// probed again after 2 to 60 s. Requests over HTTPS do not wait. If the probe gets no usable response,
        /// requests are sent. Paths to this machine itself are not probed.
        public var captivePortalProbe: String?
        /// The maximum rates of requests: one for all requests together, and one for each host. Default: none.
        public var rates: [RateLimit] = []
        /// The weights of hosts: 1 to 100. Default: 1 for each host.
        ///
        /// While requests to several hosts wait for slots, a host of weight 3 gets three slots where one of weight 1
        /// gets one, up to ``inflightPerOrigin``. The weight applies to each origin of the host. The weights have no
        /// effect while slots are free. The keys are names or addresses without a port; patterns are refused.
        public var hostWeights: [String: Int] = [:]
        /// The weights of lanes by label (``EnqueueOptions/lane``): 1 to 100. Default: 1 for each lane. They apply
        /// among the lanes of an origin.
        public var laneWeights: [String: Int] = [:]
        /// The statuses after which requests are retried or given up. Default: none, so each status has its usual meaning; see
        /// <doc:WhatFailuresMean#Response-received>.
        ///
        /// The first rules that contain a status decide: ``EnqueueOptions/statusRules``, then ``laneStatusRules``,
        /// ``hostStatusRules`` and these. They apply to the next responses, also to those of requests that wait already.
        public var statusRules = StatusRules()
        /// The rules for statuses of hosts. Default: none. The keys are names or addresses without a port; patterns are
        /// refused.
        public var hostStatusRules: [String: StatusRules] = [:]
        /// The rules for statuses of lanes by label (``EnqueueOptions/lane``). Default: none.
        public var laneStatusRules: [String: StatusRules] = [:]
        /// The names of the interfaces whose connections are metered, in addition to those of mobile networks: 1 to 15
        /// bytes each without spaces, `/` and `:`. `*` stands for any number of characters, as in `wlan*`. Default:
        /// none.
        ///
        /// Requests with ``RequestConstraints/isUnmetered`` wait while the path to their host leads over one of these
        /// interfaces. Name the interface of the route: for a tunnel or a bridge, name the tunnel or the bridge itself.
        /// Paths to the addresses of this machine itself are never metered. Linux does not know whether a connection is
        /// metered.
        public var meteredInterfaces: [String] = []
        /// The maximum time for which ``OfflineQueue/stop()`` waits for requests in flight: 0 s to 60 s. Default 10 s.
        public var stopTimeout: Duration = .seconds(10)

        /// The time between two scans of the store: 0 s to 366 days; 0 s means no scans. Default a day.
        ///
        /// A scan reads the whole database and all bodies in the background, and finds damage before a request needs
        /// the damaged part. It takes about a tenth of the disk's time, and delays no other operation. After a restart,
        /// it continues where it stopped. ``OfflineQueue/scan`` has its result.
        ///
        /// While the database has damage, the queue continues, but it cannot be opened again before
        /// ``OfflineQueue/setAside(directory:evenIfSound:encryptionKeyFile:)`` is called.
        public var scanInterval: Duration = .seconds(86_400)

        /// The times of scans.
        package var scanTiming = ScanTiming()

        /// How long, and how many, finished requests are kept.
        package var retention = StoreSettings.Retention()

        /// The time limit for a call of a credential's provider, which is its function, adapter or interceptor: 1 ms to
        /// 1 h. Default 30 s. A request waits for the call for at most 2 s. Then the request is postponed, and its next
        /// attempt uses the result of the call.
        public var credentialTimeout: Duration = .seconds(30)

        /// The maximum time for which an attempt occupies its slot while the provider of its credential is called.
        /// After it, the request is postponed, and the call continues until ``credentialTimeout``. Default 2 s.
        package var credentialWait: Duration = .seconds(2)

        /// The path of a file with the keys that encrypt stored requests. Default `nil`: no encryption.
        ///
        /// The file has one key in each line: 64 hexadecimal digits, as `openssl rand -hex 32` prints them. Empty lines
        /// and lines that begin with `#` are ignored. The first key encrypts, and all keys, at most 16, decrypt. The
        /// file must be a regular file of this user or of root, at most 4095 bytes long, and other users must not have
        /// access to it. It is read when the queue opens. See <doc:EncryptionAtRest>.
        public var encryptionKeyFile: String?

        /// The number of retries per second that are always permitted, for each origin. Tests whose servers fail often
        /// raise it, because with the default, the last of many failed requests is sent minutes later.
        package var retryRate = 1.0

        /// The intervals at which requests that are held for ``HoldReason/auth`` are tried again: 5 minutes, and further ones
        /// that double up to an hour.
        package var authRetries = Scheduler.Settings().authRetries

        /// Whether refusals are confirmed before requests are given up because of them. Tests whose servers refuse requests
        /// at once turn it off.
        package var confirmsRefusals = true

        /// The versions of HTTP of the origins. ``EnqueueOptions/httpVersion`` of a request replaces them. Default: none.
        package var httpVersions: [Origin: HTTPVersion] = [:]

        /// The time after which stored requests that could not be encrypted with the current key are tried again. The
        /// same as the interval of other background work: 60 s.
        package var resealInterval: Duration = Sweeper.longestPause

        /// How long a lane waits for the first state of its gate. Default 2.5 s.
        package var gateTimeout: Duration = Scheduler.Settings().gateTimeout

        /// How long attempts continue after the path to their host was lost. Default 3 s.
        package var lossGrace: Duration = Scheduler.Settings().lossGrace

        /// The maximum time that a call of ``OfflineQueue/send(_:options:)`` waits for a slot before an attempt. Default
        /// 1 s. A slot is often free after milliseconds, when the outcome of another attempt is stored.
        package var slotTimeout: Duration = .seconds(1)

        /// The maximum time for which ``OfflineQueue/stop()`` waits until the outcomes of cancelled attempts are stored.
        /// Default 1 s. On a slow disk, storing the outcomes may take longer. The requests then stay in flight in the
        /// store, and the next start recovers them.
        ///
        /// Only now the client knows whether part of a request was sent. A recovered attempt counts, and its request is
        /// held as ambiguous if it must not be sent twice, although nothing of it may have been sent.
        package var cancellationTimeout: Duration = .seconds(1)

        /// Creates a configuration with the defaults.
        public init(directory: String) {
            self.directory = directory
        }
    }

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
