internal import NetwatchEventLoop
internal import NetwatchTransport

/// Pauses and cancels one transfer, and buffers its events until the request's queue takes them. It may be used
/// from any thread, even before the transfer's id is known.
///
/// One turn of the queue takes all buffered events, which for a small response is the whole response. Waking a thread
/// for each event would cost more than handling the event. If the transfer delivers faster than the queue processes, it
/// is paused. A slow disk or closure therefore slows the server down instead of filling the memory.
final class TransferControl: Sendable {
    /// The number of buffered body bytes above which the transfer is paused: 1 MiB. In addition, the queue may be
    /// processing up to 1 MiB that it has already taken. The limit exceeds what a connection has in flight, so a
    /// transfer is never paused while the queue keeps up.
    private static let limit = 1 << 20
    /// The approximate memory in bytes that a piece of the body takes in addition to its content. It counts towards the
    /// limit, so that a server that sends single bytes cannot fill the memory with events.
    fileprivate static let pieceOverhead = 512

    private struct State {
        var transfer: TransferID?
        var isCancelled = false
        var isSuspended = false
        var isFull = false
        var isHeld = false
        var events: [TransferEvent] = []
        /// The memory in bytes that the buffered events take, including overhead.
        var bytes = 0
        var paused = TransferPause.none

        var wanted: TransferPause {
            if isSuspended { return .all }
            return isFull || isHeld ? .receiving : .none
        }
    }

    private let engine: TransferEngine
    private let state = Lock(State())

    init(_ engine: TransferEngine) {
        self.engine = engine
    }

    /// Sets the transfer's id. The transfer may already have delivered events.
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

    /// Sets whether no more of the response is received, because the delegate has not decided about it.
    func hold(_ isHeld: Bool) {
        update { $0.isHeld = isHeld }
    }

    /// Buffers events for the request's queue.
    ///
    /// - Returns: Whether the buffer was empty, so that the queue must be woken.
    func deliver(_ events: [TransferEvent]) -> Bool {
        update { state in
            let isFirst = state.events.isEmpty
            if isFirst { state.events = events } else { state.events += events }
            state.bytes += events.cost
            if state.bytes > Self.limit { state.isFull = true }
            return isFirst
        }
    }

    /// Removes buffered events and returns them in order, and whether there are more. If the buffer is full, only its
    /// beginning is taken: events that were taken no longer count towards the limit, but still take memory.
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

    /// Changes the state, and then pauses or resumes the transfer accordingly. The engine is called under the lock, so
    /// that it receives the changes in the order in which they were made.
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

    /// Returns the smallest number of leading events whose total cost reaches `limit`; if none does, the number of all
    /// events.
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
    /// The memory in bytes that a piece of the body takes, including overhead; 0 for other events.
    fileprivate var cost: Int {
        if case .body(let piece) = self { piece.footprint + TransferControl.pieceOverhead } else { 0 }
    }
}
