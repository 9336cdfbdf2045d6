internal import NetwatchTransport

/// The life of one request: what has come so far, and who waits for its end.
///
/// A value without I/O. It promises that each handler is handed out exactly once, in the order they were
/// added, whatever else happens and in whichever order.
struct RequestState<Handler: Sendable>: Sendable {
    enum Event: Sendable {
        /// The transfer was started; how to name it when it is to be cancelled.
        case started(TransferID)
        /// No transfer can be started.
        case refused(any Error)
        case head(TransferHead)
        case body([UInt8])
        case ended(TransferFailure?)
        case cancelled
        case sessionDropped
        case added(Handler)
    }

    enum Action: Sendable {
        case cancelTransfer(TransferID)
        case run(Handler, Outcome)
    }

    /// What a request came to.
    struct Outcome: Sendable {
        enum Failure: Sendable {
            case refused(any Error)
            case failed(TransferFailure)
            /// What the transfer had come to is `nil` when it had ended well all the same.
            case cancelled(TransferFailure?)
            case sessionDropped
        }

        var wasSent = false
        var head: TransferHead?
        var body: [UInt8] = []
        var failure: Failure?
    }

    private enum Phase {
        case created
        case running(TransferID)
        /// Waiting for the end of a transfer that was told to end.
        case ending
        case finished
    }

    private enum Interruption {
        case cancel
        case sessionDrop
    }

    private var phase = Phase.created
    private var interruption: Interruption?
    private var waiting: [Handler] = []
    private(set) var outcome = Outcome()

    var isFinished: Bool {
        if case .finished = phase { true } else { false }
    }

    mutating func handle(_ event: Event) -> [Action] {
        switch event {
        case .started(let id): return started(id)
        case .refused(let error): return refused(error)
        case .head(let head): return receive { $0.head = head }
        case .body(let bytes): return receive { $0.body += bytes }
        case .ended(let failure): return ended(failure)
        case .cancelled: return interrupted(by: .cancel)
        case .sessionDropped: return interrupted(by: .sessionDrop)
        case .added(let handler): return added(handler)
        }
    }

    private mutating func started(_ id: TransferID) -> [Action] {
        guard case .created = phase else { return [] }
        outcome.wasSent = true
        guard interruption == nil else {
            phase = .ending
            return [.cancelTransfer(id)]
        }
        phase = .running(id)
        return []
    }

    private mutating func refused(_ error: any Error) -> [Action] {
        guard case .created = phase else { return [] }
        outcome.failure = .refused(error)
        return finish()
    }

    private mutating func receive(_ change: (inout Outcome) -> Void) -> [Action] {
        // Before `started`, too: the transfer may be faster than the thread that started it.
        if !isFinished { change(&outcome) }
        return []
    }

    private mutating func ended(_ failure: TransferFailure?) -> [Action] {
        guard !isFinished else { return [] }
        outcome.wasSent = true
        switch interruption {
        case .cancel: outcome.failure = .cancelled(failure)
        case .sessionDrop: outcome.failure = .sessionDropped
        case nil: outcome.failure = failure.map { .failed($0) }
        }
        return finish()
    }

    /// The first reason stands. The end is the transfer's to tell: it knows how far it came.
    private mutating func interrupted(by interruption: Interruption) -> [Action] {
        guard !isFinished, self.interruption == nil else { return [] }
        self.interruption = interruption
        guard case .running(let id) = phase else { return [] }
        phase = .ending
        return [.cancelTransfer(id)]
    }

    private mutating func added(_ handler: Handler) -> [Action] {
        guard isFinished else {
            waiting.append(handler)
            return []
        }
        return [.run(handler, outcome)]
    }

    private mutating func finish() -> [Action] {
        phase = .finished
        defer { waiting = [] }
        return waiting.map { .run($0, outcome) }
    }
}
