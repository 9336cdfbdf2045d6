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

    func recover(releasing reasons: Set<HoldReason>) async throws -> [LaneRecord] {
        defer { signal.post() }
        return try await inner.recover(releasing: reasons)
    }

    func reopen(releasing reasons: Set<HoldReason>) async throws -> [LaneRecord] {
        defer { signal.post() }
        return try await inner.reopen(releasing: reasons)
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

    func releaseRequests(heldForCredential name: String, triedBefore time: Timestamp?) async throws {
        defer { signal.post() }
        try await inner.releaseRequests(heldForCredential: name, triedBefore: time)
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

extension OfflineQueue {
    /// Opens a queue on an ``ObservedStore``, with the same settings as the queue's initialiser.
    static func opening(
        _ configuration: Configuration,
        sender: any AttemptSender,
        gate: any HostGate,
        signal: ChangeSignal
    ) async throws -> OfflineQueue {
        var settings = StoreSettings()
        settings.limits = configuration.limits
        settings.longestDelay = configuration.backoffCap
        let store = try await SQLiteQueueStore(directory: configuration.directory, settings: settings)
        let observed = ObservedStore(inner: store, signal: signal)
        return OfflineQueue(configuration: configuration, store: observed, sender: sender, gate: gate)
    }
}

extension ChangeSignal {
    /// Waits until the counts of a queue on an ``ObservedStore`` satisfy a condition.
    func until(_ queue: OfflineQueue, _ isSatisfied: (QueueCounts) -> Bool) async throws {
        try await until { try await isSatisfied(queue.counts) }
    }
}
