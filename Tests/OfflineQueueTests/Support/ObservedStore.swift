internal import NetwatchTestSupport
internal import OfflineQueue

/// A store that sends a signal after each call that may have changed it. By then the change is committed, and spool
/// files that are no longer needed are removed.
struct ObservedStore: WrappedStore {
    let inner: any QueueStore
    let signal: ChangeSignal

    func enqueue(_ requests: [NewRequest]) async throws -> [EnqueuedRequest] {
        defer { signal.post() }
        return try await inner.enqueue(requests)
    }

    func recover(releasing reasons: Set<HoldReason>) async throws {
        defer { signal.post() }
        try await inner.recover(releasing: reasons)
    }

    func reopen(
        _ selection: LaneSelection,
        releasing reasons: Set<HoldReason>
    ) async throws -> [QueueStatistics.ClosedLane] {
        defer { signal.post() }
        return try await inner.reopen(selection, releasing: reasons)
    }

    func claim(_ claims: [LaneClaim]) async throws -> [ClaimedBatch] {
        defer { signal.post() }
        return try await inner.claim(claims)
    }

    func conclude(_ conclusions: [Conclusion], claiming claims: [LaneClaim]) async throws -> Concluded {
        defer { signal.post() }
        return try await inner.conclude(conclusions, claiming: claims)
    }

    func edit(_ edit: QueueEdit, _ ids: [String]) async throws -> [EditResult] {
        defer { signal.post() }
        return try await inner.edit(edit, ids)
    }

    func setCredential(_ name: String, of ids: [String]) async throws -> [EditResult] {
        defer { signal.post() }
        return try await inner.setCredential(name, of: ids)
    }

    func releaseRequests(heldForCredential name: String, triedBefore time: ContinuousClock.Instant?)
        async throws
    {
        defer { signal.post() }
        try await inner.releaseRequests(heldForCredential: name, triedBefore: time)
    }

    func release(_ release: HeldRelease) async throws -> ReleasedRequests {
        defer { signal.post() }
        return try await inner.release(release)
    }

    func expire() async throws -> Duration? {
        defer { signal.post() }
        return try await inner.expire()
    }

    func reseal(after cursor: ResealCursor) async throws -> ResealCursor? {
        defer { signal.post() }
        return try await inner.reseal(after: cursor)
    }

    func setPaused(_ isPaused: Bool, lanes: LaneSelection?) async throws -> Int {
        defer { signal.post() }
        return try await inner.setPaused(isPaused, lanes: lanes)
    }
}

extension OfflineQueue.Configuration {
    /// Creates a configuration with the defaults, except for the times after which the queue stops waiting for something
    /// that takes longer on a busy machine. Refusals are final at once; ``RefusalEngineTests`` tests their confirmation.
    init(withLongTimeouts directory: String) {
        self.init(directory: directory)
        credentialWait = .seconds(60)
        gateTimeout = .seconds(60)
        slotTimeout = .seconds(60)
        cancellationTimeout = .seconds(10)
        confirmsRefusals = false
    }
}

extension TemporaryDirectory {
    /// Opens a queue on an ``ObservedStore`` in the directory, with settings that do not depend on the load and the disk
    /// of the machine. By default, a backoff of an hour prevents retries during a test.
    ///
    /// - Parameters:
    ///   - signal: Posted after each call of the store that may have changed it. Default: none.
    ///   - isStarted: Whether the queue is started. Default `true`.
    ///   - adjust: Changes the settings. Default: no changes.
    func openQueue(
        _ sender: any AttemptSender = FakeSender(),
        gate: any HostGate = FakeGate(),
        portals: (any PortalDetector)? = nil,
        signal: ChangeSignal = ChangeSignal(),
        isStarted: Bool = true,
        _ adjust: (inout OfflineQueue.Configuration) -> Void = { _ in }
    ) async throws -> OfflineQueue {
        var configuration = OfflineQueue.Configuration(withLongTimeouts: path)
        configuration.limits.diskReserve = 0
        (configuration.backoffBase, configuration.backoffCap) = (.seconds(3600), .seconds(7200))
        configuration.stopTimeout = .milliseconds(200)
        adjust(&configuration)
        var settings = StoreSettings()
        settings.limits = configuration.limits
        settings.longestDelay = configuration.backoffCap
        let store = try await SQLiteQueueStore(directory: path, settings: settings)
        let queue = OfflineQueue(
            configuration: configuration,
            store: ObservedStore(inner: store, signal: signal),
            sender: sender,
            gate: gate,
            portals: portals
        )
        if isStarted { try await queue.start() }
        return queue
    }
}

extension ChangeSignal {
    /// Waits until the counts of a queue on an ``ObservedStore`` satisfy a condition.
    func until(_ queue: OfflineQueue, _ isSatisfied: (QueueCounts) -> Bool) async throws {
        try await until { try await isSatisfied(queue.counts) }
    }
}
