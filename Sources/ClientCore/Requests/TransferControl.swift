internal import NetwatchTransport
internal import Synchronization

/// Pauses and ends one transfer, from any thread and before its name is known, and keeps what it has delivered
/// until its request's queue comes for it.
///
/// A turn of the queue takes what waits, which with a small response is all of it: waking a thread for each
/// part would cost more than handling it. A transfer that delivers faster than its queue takes is paused: a slow
/// disk, or a slow closure, slows the server down in place of filling the memory.
final class TransferControl: Sendable {
    /// How many bytes of body may wait; as many may be in the hands of the queue. More than what a connection has on
    /// its way at once, so that a queue that keeps up never pauses.
    private static let limit = 1 << 20
    /// What a piece costs beside its bytes, roughly: a server that sends them one by one would fill the memory with
    /// what holds them.
    fileprivate static let pieceOverhead = 512

    private struct State {
        var transfer: TransferID?
        var isCancelled = false
        var isSuspended = false
        var isFull = false
        var events: [TransferEvent] = []
        /// How much memory the bodies in the events take.
        var bytes = 0
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

    /// Keeps events for the request's queue.
    ///
    /// - Returns: Whether nothing else was waiting there, so that the queue has to be told.
    func deliver(_ events: [TransferEvent]) -> Bool {
        update { state in
            let isFirst = state.events.isEmpty
            state.events += events
            state.bytes += events.cost
            if state.bytes > Self.limit { state.isFull = true }
            return isFirst
        }
    }

    /// What was delivered since the last time, in order, and whether there is more: of much only the beginning is
    /// taken, for what is taken counts no more.
    func take() -> (events: [TransferEvent], isMore: Bool) {
        update { state in
            let count = state.isFull ? state.events.count(within: Self.limit) : state.events.count
            guard count < state.events.count else {
                defer { (state.events, state.bytes, state.isFull) = ([], 0, false) }
                return (state.events, false)
            }
            let taken = Array(state.events.prefix(count))
            state.events.removeFirst(count)
            state.bytes -= taken.cost
            state.isFull = state.bytes > Self.limit
            return (taken, true)
        }
    }

    /// The engine is told under the lock, so that it hears of changes in the order in which they were made.
    private func update<Result: Sendable>(_ change: (inout State) -> Result) -> Result {
        state.withLock { state in
            let result = change(&state)
            guard let transfer = state.transfer, state.wanted != state.paused else { return result }
            if !state.paused.isEmpty { engine.resume(transfer) }
            if !state.wanted.isEmpty { engine.pause(transfer, state.wanted) }
            state.paused = state.wanted
            return result
        }
    }
}

extension [TransferEvent] {
    fileprivate var cost: Int { reduce(0) { $0 + $1.cost } }

    /// How many of the first ones cost so much, or as little more as can be.
    fileprivate func count(within limit: Int) -> Int {
        var rest = limit
        let last = firstIndex { event in
            rest -= event.cost
            return rest <= 0
        }
        return last.map { $0 + 1 } ?? count
    }
}

extension TransferEvent {
    /// The memory of the body in it, and what holds that.
    fileprivate var cost: Int {
        if case .body(let piece) = self { piece.bytes.capacity + TransferControl.pieceOverhead } else { 0 }
    }
}
