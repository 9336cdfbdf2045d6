internal import NetwatchTransport
internal import Synchronization

/// Pauses and ends one transfer, from any thread and before its name is known.
///
/// It also keeps the transfer from delivering faster than its request's queue takes: a slow disk, or a slow
/// closure, slows the server down in place of filling the memory.
final class TransferControl: Sendable {
    /// More than what a connection has on its way at once, so that a queue that keeps up never pauses.
    private static let limit = 1 << 20
    /// What a piece costs beside its bytes, roughly: a server that sends them one by one would fill the memory with
    /// what holds them.
    private static let pieceOverhead = 512

    private struct State {
        var transfer: TransferID?
        var isCancelled = false
        var isSuspended = false
        var isFull = false
        var outstanding = 0
        var paused: TransferPause = []

        var wanted: TransferPause {
            if isSuspended { return .all }
            return isFull ? .receiving : []
        }
    }

    private let engine: TransferEngine
    private let state = Mutex(State())

    init(_ engine: TransferEngine) {
        self.engine = engine
    }

    /// Names the transfer, which may have delivered already.
    func begin(_ transfer: TransferID) {
        update {
            $0.transfer = transfer
            if $0.isCancelled { engine.cancel(transfer) }
        }
    }

    func cancel() {
        update {
            $0.isCancelled = true
            if let transfer = $0.transfer { engine.cancel(transfer) }
        }
    }

    func suspend(_ isSuspended: Bool) {
        update { $0.isSuspended = isSuspended }
    }

    /// A piece of so many bytes waits on the request's queue.
    func delivered(_ count: Int) {
        update {
            $0.outstanding += count + Self.pieceOverhead
            if $0.outstanding > Self.limit { $0.isFull = true }
        }
    }

    /// It no longer does. Half the limit, so that one chunk more or less does not pause and resume each time.
    func taken(_ count: Int) {
        update {
            $0.outstanding -= count + Self.pieceOverhead
            if $0.outstanding < Self.limit / 2 { $0.isFull = false }
        }
    }

    /// The engine is told under the lock, so that it hears of changes in the order in which they were made.
    private func update(_ change: (inout State) -> Void) {
        state.withLock { state in
            change(&state)
            guard let transfer = state.transfer, state.wanted != state.paused else { return }
            if !state.paused.isEmpty { engine.resume(transfer) }
            if !state.wanted.isEmpty { engine.pause(transfer, state.wanted) }
            state.paused = state.wanted
        }
    }
}
