internal import NetwatchEventLoop
internal import NetwatchTransport

/// A recorder of the events of a transfer, which can wait for the end.
final class TransferRecorder: Sendable {
    struct Record {
        var connections: [ConnectionPeer] = []
        var heads: [TransferHead] = []
        var body: [UInt8] = []
        var progress: [TransferProgress] = []
        var ends: [TransferEnd] = []

        var head: TransferHead? { heads.first }
        var text: String { String(decoding: body, as: UTF8.self) }
        var failure: TransferFailure? { ends.first?.failure }
        var metrics: TransferMetrics? { ends.first?.metrics }
        var hasSucceeded: Bool { ends.first.map { $0.failure == nil } ?? false }
    }

    private struct State {
        var record = Record()
        var waiters: [(condition: @Sendable (Record) -> Bool, wake: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Lock(State())

    var record: Record { state.withLock { $0.record } }

    func deliver(_ event: TransferEvent) {
        let woken = state.withLock { state in
            switch event {
            case .head(let head): state.record.heads.append(head)
            case .body(let piece): state.record.body += piece.bytes
            case .connected(let peer): state.record.connections.append(peer)
            case .progress(let progress): state.record.progress.append(progress)
            case .end(let end): state.record.ends.append(end)
            }
            let record = state.record
            let woken = state.waiters.filter { $0.condition(record) }.map(\.wake)
            state.waiters.removeAll { $0.condition(record) }
            return woken
        }
        for waiter in woken { waiter.resume() }
    }

    @discardableResult
    func end() async -> Record {
        await wait { !$0.ends.isEmpty }
    }

    /// Waits until the recorded events satisfy a condition.
    @discardableResult
    func wait(until condition: @escaping @Sendable (Record) -> Bool) async -> Record {
        await withCheckedContinuation { waiter in
            let isSatisfied = state.withLock { state in
                if condition(state.record) { return true }
                state.waiters.append((condition, waiter))
                return false
            }
            if isSatisfied { waiter.resume() }
        }
        return record
    }
}

extension TransferEngine {
    /// Starts a transfer and waits for its end.
    nonisolated func run(_ request: TransferRequest) async -> TransferRecorder.Record {
        let recorder = TransferRecorder()
        start(request) { recorder.deliver($0) }
        return await recorder.end()
    }

    /// Waits until the engine has handled all earlier calls.
    nonisolated func settle() async {
        _ = await run(TransferRequest(url: ""))
    }
}

extension NameResolver {
    /// Returns a resolver that returns these addresses for every name.
    static func answering(_ addresses: String...) -> NameResolver {
        let addresses = addresses.map { IPAddress($0)! }
        return NameResolver { _ in .success(addresses) }
    }
}
