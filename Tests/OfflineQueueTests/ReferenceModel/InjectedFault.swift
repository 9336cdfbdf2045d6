internal import Foundation
internal import NetwatchEventLoop
internal import OfflineQueue

/// The faults that a test injects into the store. The comparison with the model must detect each of them.
enum InjectedFault: String, CaseIterable {
    /// A sender that has lost its lease can still store an outcome.
    case fencing
    /// An attempt without a path counts as an attempt.
    case refunds
    /// The last request of each batch is cancelled when it is enqueued.
    case acceptance
    /// Requests in flight of a dead owner are not recovered.
    case recovery
    /// A retry gets a new idempotency key.
    case keys
    /// No request expires.
    case expiry
    /// Changed lanes are not reported.
    case changes
    /// A lane stays paused when the whole queue is resumed.
    case pauses
    /// Events of unblocked requests are lost.
    case events
    /// A request with several dependencies is unblocked as soon as one of them is delivered.
    case dependencies

    /// - Parameter directory: The directory of the store.
    func applied(to store: any QueueStore, in directory: TemporaryDirectory) -> any QueueStore {
        FaultyStore(inner: store, fault: self, directory: directory, tokens: Tokens())
    }
}

private final class Tokens: Sendable {
    let current = Lock<[Int64: String]>([:])
}

private struct FaultyStore: WrappedStore {
    let inner: any QueueStore
    let fault: InjectedFault
    let directory: TemporaryDirectory
    let tokens: Tokens
    private let silentChanges = LaneChanges()

    var changes: LaneChanges { fault == .changes ? silentChanges : inner.changes }

    init(inner: any QueueStore, fault: InjectedFault, directory: TemporaryDirectory, tokens: Tokens) {
        self.inner = inner
        self.fault = fault
        self.directory = directory
        self.tokens = tokens
    }

    func enqueue(_ requests: [NewRequest]) async throws -> [EnqueuedRequest] {
        let accepted = try await inner.enqueue(requests)
        if fault == .acceptance, requests.count > 1 {
            _ = try await inner.edit(.cancel, [requests.last!.id])
        }
        return accepted
    }

    func claim(_ claims: [LaneClaim]) async throws -> [ClaimedBatch] {
        let batches = try await inner.claim(claims)
        remember(batches)
        return batches
    }

    private func remember(_ batches: [ClaimedBatch]) {
        tokens.current.withLock { tokens in
            for request in batches.flatMap(\.requests) { tokens[request.sequence] = request.lease.token }
        }
    }

    func conclude(_ conclusions: [Conclusion], claiming claims: [LaneClaim]) async throws -> Concluded {
        if fault == .dependencies { try forgetOtherDependencies(than: conclusions.filter(\.isDelivered)) }
        let concluded = try await inner.conclude(conclusions.map(broken), claiming: claims)
        remember(concluded.claimed)
        return concluded
    }

    private func forgetOtherDependencies(than delivered: [Conclusion]) throws {
        for sequence in delivered.map(\.sequence) {
            let dependents = "SELECT seq FROM depends WHERE on_seq = \(sequence)"
            try OfflineQueueTests.edit(
                directory,
                "DELETE FROM depends WHERE on_seq <> \(sequence) AND seq IN (\(dependents))"
            )
        }
    }

    private func broken(_ conclusion: Conclusion) -> Conclusion {
        let current = tokens.current.withLock { $0[conclusion.sequence] }
        let token = fault == .fencing ? current ?? conclusion.token : conclusion.token
        let isRefund = conclusion.verdict == .retry(countsAsAttempt: false)
        return Conclusion(
            sequence: conclusion.sequence,
            token: token,
            verdict: fault == .refunds && isRefund ? .retry(countsAsAttempt: true) : conclusion.verdict,
            delay: conclusion.delay,
            status: conclusion.status,
            detail: conclusion.detail,
            laneClosure: conclusion.laneClosure,
            attempt: conclusion.attempt,
            response: conclusion.response
        )
    }

    func recover(releasing reasons: Set<HoldReason>) async throws {
        if fault != .recovery { try await inner.recover(releasing: reasons) }
    }

    func edit(_ edit: QueueEdit, _ ids: [String]) async throws -> [EditResult] {
        let isRetry = edit == .retry(newKey: false)
        return try await inner.edit(fault == .keys && isRetry ? .retry(newKey: true) : edit, ids)
    }

    func setPaused(_ isPaused: Bool, lanes: LaneSelection?) async throws -> Int {
        let paused = try await inner.statistics().pausedLanes
        let count = try await inner.setPaused(isPaused, lanes: lanes)
        guard fault == .pauses, lanes == nil else { return count }
        for lane in paused {
            _ = try await inner.setPaused(true, lanes: LaneSelection(host: lane.host, label: lane.label))
        }
        return count
    }

    func expire() async throws -> Duration? {
        fault == .expiry ? nil : try await inner.expire()
    }
}

extension Conclusion {
    fileprivate var isDelivered: Bool { if case .delivered = verdict { true } else { false } }
}
