internal import Foundation

/// Keeps HTTP requests on the disk until they are delivered.
///
/// When ``enqueue(_:options:)`` returns, the request survives a crash and a power cut. It is sent at least
/// once, with the same `Idempotency-Key` every time, as soon as its host can be reached. One process owns
/// a queue's directory. A queue lives until ``stop()``, which is to be called.
///
/// Nothing here blocks a thread of the cooperative pool; all methods may be called from any task.
public actor OfflineQueue {
    /// How a queue works.
    public struct Configuration: Hashable, Sendable {
        /// Where the queue is kept; made with permissions 0700 when missing, as is what is missing above it. One
        /// that exists and is open to others is closed to them when it is empty or a queue's, else refused.
        public var directory: String
        /// The shortest wait after a failure, which doubles with every further one. Default 2 s.
        public var backoffBase: Duration = .seconds(2)
        /// The longest wait after failures, and how often an unreachable host is tried all the same.
        /// Default 15 min. (A server's `Retry-After` may close a lane for up to 24 h.)
        public var backoffCap: Duration = .seconds(900)
        /// Requests of one lane that are sent at once. Default 8; a lane in order sends 1.
        public var inflightPerLane = 8
        /// Requests that are sent at once. Default 32.
        public var inflight = 32
        /// How long ``OfflineQueue/OfflineQueue/stop()`` waits for what is being sent. Default 10 s.
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

    let configuration: Configuration
    let store: any QueueStore
    let sender: any AttemptSender
    let gate: any HostGate
    let failureContinuation: AsyncStream<QueueError>.Continuation
    let origin = ContinuousClock.now

    var phase = Phase.ready
    var scheduler: Scheduler
    var waiters: [String: Waiter] = [:]
    var inflight: [Int64: Inflight] = [:]
    var claimsUnderWay = 0
    var watches: [String: Task<Void, Never>] = [:]
    var timer: (moment: Moment, task: Task<Void, Never>)?
    /// No attempt begins before connections of an old path are dropped.
    var pathChange: Task<Void, Never>?
    var drain = Drain()

    /// Opens the queue's directory. Nothing is sent before ``start()``.
    ///
    /// - Throws: ``QueueError``: `alreadyOwned` with the owner's process id, `directoryUnusable`,
    ///   `storeUnusable`, `storeFailed`.
    package init(
        configuration: Configuration,
        sender: any AttemptSender,
        gate: any HostGate
    ) async throws {
        var limits = SQLiteQueueStore.Limits()
        limits.longestDelay = configuration.backoffCap
        let store = try await SQLiteQueueStore(directory: configuration.directory, limits: limits)
        self.init(configuration: configuration, store: store, sender: sender, gate: gate)
    }

    package init(
        configuration: Configuration,
        store: any QueueStore,
        sender: any AttemptSender,
        gate: any HostGate
    ) {
        self.configuration = configuration
        self.store = store
        self.sender = sender
        self.gate = gate
        (failures, failureContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        var settings = Scheduler.Settings()
        settings.backoff = Backoff(base: configuration.backoffBase, cap: configuration.backoffCap)
        settings.inflightPerLane = configuration.inflightPerLane
        settings.inflight = configuration.inflight
        scheduler = Scheduler(settings: settings, seed: UInt64.random(in: 0 ... .max))
    }
}

// MARK: - Requests

extension OfflineQueue {
    /// Puts a request on the disk and returns. It is sent as soon as its lane allows.
    ///
    /// - Throws: ``QueueError`` when the request is refused or cannot be written. After `storeFailed` the
    ///   request may be on the disk or not; with an id of one's own it can be enqueued again safely.
    public func enqueue(
        _ request: QueueRequest,
        options: EnqueueOptions = EnqueueOptions()
    ) async throws -> Receipt {
        let new = try NewRequest(request, options: options)
        let accepted = try await accept(new)
        announce(accepted)
        return Receipt(id: new.id, isNew: accepted.isNew, idempotencyKey: accepted.idempotencyKey)
    }

    /// Puts a request on the disk, tries it at once and returns what came of the first attempt.
    ///
    /// In a lane with a backlog it waits for its turn. It is not tried, and the result says so, when its host is known not to be reachable, when
    /// its lane is closed after failures or when its lane keeps order and has earlier requests. Cancelling
    /// the task ends the waiting, not the request.
    ///
    /// - Throws: As ``enqueue(_:options:)``.
    public func send(
        _ request: QueueRequest,
        options: EnqueueOptions = EnqueueOptions()
    ) async throws -> SendResult {
        let new = try NewRequest(request, options: options)
        guard waiters[new.id] == nil else {
            _ = try await accept(new)
            return .queued(id: new.id, reason: .alreadyQueued)
        }
        // Before the request is written: a claim under way may take it before this task hears of it.
        waiters[new.id] = Waiter()
        let accepted: EnqueuedRequest
        do {
            accepted = try await accept(new)
        } catch {
            waiters[new.id] = nil
            throw error
        }
        if let result = immediateResult(new.id, accepted) {
            waiters[new.id] = nil
            announce(accepted)
            return result
        }
        return await firstResult(of: new.id, accepted)
    }

    /// The newest state of up to `limit` requests: those on their way in their order, then finished ones,
    /// newest first. Of finished ones the newest 10,000 are kept.
    public func list(limit: Int = 100) async throws -> [QueuedRequest] {
        try await store.list(limit: max(0, limit))
    }

    /// How many requests are in which state. Counts all of them, so it is not for a busy loop.
    public var counts: QueueCounts {
        get async throws { try await store.counts() }
    }

    private func accept(_ new: NewRequest) async throws -> EnqueuedRequest {
        guard phase != .stopped else { throw QueueError(.stopped, "the queue is stopped") }
        do {
            return try await store.enqueue([new], now: .now)[0]
        } catch {
            failed(error)
            throw error
        }
    }
}

// MARK: - Life

extension OfflineQueue {
    /// Takes up what earlier runs left and begins to send. Calling it again does nothing.
    ///
    /// - Throws: ``QueueError`` of the store.
    public func start() async throws {
        guard phase == .ready else { return }
        phase = .running
        do {
            let lanes = try await store.recover(releasing: [.trust, .configuration, .auth], now: .now)
            for lane in lanes { announce(lane) }
        } catch {
            failed(error)
            throw error
        }
    }

    /// Tries everything that waits now: backoff, `Retry-After` and the gate are passed over once, and what
    /// is held for trust, configuration or credentials is tried again. Returns before the attempts end.
    ///
    /// - Throws: ``QueueError`` of the store.
    public func flush() async throws {
        guard phase == .running else { return }
        do {
            let lanes = try await store.reopen(releasing: [.trust, .configuration, .auth], now: .now)
            for lane in lanes { announce(lane) }
            handle(.flush)
        } catch {
            failed(error)
            throw error
        }
    }

    /// Ends the queue: nothing new is sent, what is being sent is waited for up to
    /// ``Configuration/stopTimeout`` and then left to the next start, and the directory is given up.
    public func stop() async {
        guard phase != .stopped else { return }
        phase = .stopped
        handle(.stop)
        for watch in watches.values { watch.cancel() }
        await drained(within: configuration.stopTimeout)
        for id in Array(waiters.keys) { answer(id, .queued(id: id, reason: .stopped)) }
        for attempt in inflight.values { attempt.transfer.cancel() }
        await store.close()
        failureContinuation.finish()
    }
}
