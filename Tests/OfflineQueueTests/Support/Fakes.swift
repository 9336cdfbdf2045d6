internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability
internal import OfflineQueue

/// A sender without a network. It passes each attempt to the test and waits for the outcome, or a closure determines
/// the outcome.
final class FakeSender: AttemptSender {
    private struct State {
        var attempts: [Attempt] = []
        var waiting: [CheckedContinuation<Attempt, Never>] = []
        var unseen: [Attempt] = []
        var answers: [String: CheckedContinuation<AttemptOutcome, Never>] = [:]
        var pathChanges = 0
    }

    private let state = Lock(State())
    private let automatic: (@Sendable (Attempt) -> AttemptOutcome)?

    init(_ automatic: (@Sendable (Attempt) -> AttemptOutcome)? = nil) {
        self.automatic = automatic
    }

    func send(_ attempt: Attempt) async -> AttemptOutcome {
        if let automatic {
            note(attempt)
            return automatic(attempt)
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                state.withLock { $0.answers[attempt.id] = continuation }
                note(attempt)
            }
        } onCancel: {
            let cancelled = AttemptFailure(code: 42, phase: .response, message: "cancelled")
            answer(attempt, .failure(cancelled))
        }
    }

    func dropConnections() async {
        state.withLock { $0.pathChanges += 1 }
    }

    var attempts: [Attempt] { state.withLock { $0.attempts } }
    var pathChanges: Int { state.withLock { $0.pathChanges } }

    /// Waits for an attempt that no earlier call has returned, and returns it.
    func nextAttempt() async -> Attempt {
        await withCheckedContinuation { continuation in
            let attempt = state.withLock { state -> Attempt? in
                guard state.unseen.isEmpty else { return state.unseen.removeFirst() }
                state.waiting.append(continuation)
                return nil
            }
            if let attempt { continuation.resume(returning: attempt) }
        }
    }

    func answer(_ attempt: Attempt, _ outcome: AttemptOutcome) {
        state.withLock { $0.answers.removeValue(forKey: attempt.id) }?.resume(returning: outcome)
    }

    private func note(_ attempt: Attempt) {
        let waiter = state.withLock { state -> CheckedContinuation<Attempt, Never>? in
            state.attempts.append(attempt)
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.unseen.append(attempt)
            return nil
        }
        waiter?.resume(returning: attempt)
    }
}

extension GateState {
    /// The state without a path, for tests to which the reason does not matter.
    static let notReachable = GateState.down(.noRoute)
}

extension QueuedReason {
    /// The reason for waiting in the state ``GateState/notReachable``.
    static let noPath = QueuedReason.notReachable(.noRoute)
}

/// A gate whose states the test sets.
final class FakeGate: HostGate {
    private struct State {
        var current: GateState
        var reports: [UUID: @Sendable (GateState) -> Void] = [:]
    }

    private final class Watch: GateWatch {
        private let onCancel: @Sendable () -> Void

        init(onCancel: @escaping @Sendable () -> Void) { self.onCancel = onCancel }

        deinit { onCancel() }

        func cancel() { onCancel() }
    }

    private let state: Lock<State>

    init(_ initial: GateState = .reachable(generation: 1)) {
        state = Lock(State(current: initial))
    }

    func watch(_ endpoint: Endpoint, report: @escaping @Sendable (GateState) -> Void) -> (any GateWatch)? {
        let id = UUID()
        // Reports within the lock, so that the state of a concurrent ``turn(_:)`` remains the newest one.
        state.withLock { state in
            state.reports[id] = report
            report(state.current)
        }
        return Watch { [weak self] in self?.state.withLock { $0.reports[id] = nil } }
    }

    func turn(_ next: GateState) {
        state.withLock { state in
            state.current = next
            for report in state.reports.values { report(next) }
        }
    }
}

extension AttemptOutcome {
    static func status(
        _ status: Int,
        _ headers: [(String, String)] = [],
        body: String = ""
    ) -> AttemptOutcome {
        .response(status: status, headers: headers, body: Data(body.utf8), isTruncated: false)
    }

    static let unreachable = AttemptOutcome.failure(
        AttemptFailure(code: 7, errno: 101, phase: .connect, message: "Network is unreachable")
    )
    static let refused = AttemptOutcome.failure(
        AttemptFailure(code: 7, errno: 111, phase: .connect, message: "Connection refused")
    )
    static let unresolved = AttemptOutcome.failure(
        AttemptFailure(code: 6, phase: .resolve, message: "Could not resolve host")
    )
    static let reset = AttemptOutcome.failure(
        AttemptFailure(code: 56, errno: 104, phase: .response, bytesSent: 100, message: "Connection reset")
    )
}

/// A detector of captive portals whose findings the test determines.
final class FakePortalDetector: PortalDetector {
    /// A call by the queue.
    enum Call: Equatable {
        case probe(host: String)
        case pathsChanged
    }

    /// A running probe.
    struct Probe: Sendable {
        let host: String
        fileprivate let answer: CheckedContinuation<PortalFinding, Never>

        func end(_ finding: PortalFinding) { answer.resume(returning: finding) }
    }

    private let probes: AsyncStream<Probe>
    private let continuation: AsyncStream<Probe>.Continuation
    private let recorded = Lock<[Call]>([])
    private let failed = Lock(false)

    init() {
        (probes, continuation) = AsyncStream.makeStream()
    }

    /// The calls so far, in order.
    var calls: [Call] { recorded.withLock { $0 } }

    func probe(pathTo endpoint: Endpoint) async -> PortalFinding {
        await withCheckedContinuation { answer in
            recorded.withLock { $0.append(.probe(host: endpoint.host)) }
            continuation.yield(Probe(host: endpoint.host, answer: answer))
        }
    }

    func hasFailed(pathTo endpoint: Endpoint) async -> Bool { failed.withLock { $0 } }

    func pathsChanged() async {
        recorded.withLock { $0.append(.pathsChanged) }
        failed.withLock { $0 = false }
    }

    /// Makes the last probes of the paths to all hosts count as failed, until the next path change.
    func setFailed() { failed.withLock { $0 = true } }

    /// Waits for a probe that no earlier call has returned, and returns it. The test must end each probe.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    func nextProbe() async throws -> Probe {
        var probes = probes.makeAsyncIterator()
        guard let probe = await probes.next() else { throw CancellationError() }
        return probe
    }

    /// Ends every probe with `finding` that no earlier call has returned, until the returned task is cancelled.
    ///
    /// A path is probed again after a time. Therefore a test that changes the path of an earlier probe cannot know
    /// whether the next probe is of the new path.
    func endAll(_ finding: PortalFinding) -> Task<Void, Never> {
        Task { while let probe = try? await nextProbe() { probe.end(finding) } }
    }
}
