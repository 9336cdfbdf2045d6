/// The state machine of one request. It decides about attempts and retries, and stores the handlers until the end.
///
/// It is a value without I/O, and guarantees for any order of events:
///
/// - Each handler is run exactly once, in the order in which the handlers were added.
/// - Nothing is sent after ``Event/interrupted(_:)``.
/// - An owner that holds the failed request is notified if the request ends in another way, for example because it is
///   cancelled.
struct RequestStateMachine<Handler> {
    /// The reason why a request ends before its attempts have decided the outcome.
    enum Interruption: Sendable {
        case cancelled
        case sessionDropped
        /// The owner that the program has named for the request can never store it.
        case refused
    }

    enum Event {
        case resumed
        case suspended
        case interrupted(Interruption)
        /// The attempt's request was prepared, or preparing it failed.
        case prepared(attempt: Int, failure: (any Error)?)
        /// The attempt has ended.
        case ended(attempt: Int, failure: (any Error)?)
        /// The validators have checked a complete response.
        case validated(attempt: Int, failure: (any Error)?)
        /// The retrier has decided about a failed attempt.
        case decided(attempt: Int, RetryDecision)
        /// The delay before the next attempt has passed.
        case waited(attempt: Int)
        /// The owner has stored the failed request and will finish it.
        case queued(attempt: Int)
        /// The owner has finished the failed request, with a response or with another failure.
        case answered(attempt: Int, failure: (any Error)?)
        /// Every owner has declined the failed request.
        case declined(attempt: Int)
        case added(Handler)
        /// A chain of calls has added something to the request, which may already have finished.
        case amended(Amendment)
    }

    /// An addition that a chain of calls may still make after the request has finished, because the server was faster
    /// than the calls.
    enum Amendment {
        case validator
        case credential
        /// An owner that is offered the request if it has failed.
        case owner
    }

    enum Action {
        /// Prepare the attempt's request. Answered by ``Event/prepared(attempt:failure:)``.
        case prepare(attempt: Int)
        /// Send the request. Answered by ``Event/ended(attempt:failure:)``.
        case send(attempt: Int)
        case pause
        case unpause
        /// Stop the attempt. Its end is reported by ``Event/ended(attempt:failure:)``.
        case stop
        case validate(attempt: Int)
        /// Ask the retrier whether to retry. Answered by ``Event/decided(attempt:_:)``.
        case askRetrier(attempt: Int, any Error)
        case wait(attempt: Int, Duration)
        /// Offer the failed request to its owners, one after another. Answered by
        /// ``Event/answered(attempt:failure:)`` or ``Event/declined(attempt:)``.
        case offer(attempt: Int, any Error)
        /// Notify the owner that holds the failed request that the request has ended.
        case withdraw(Interruption)
        case finish(Ending)
        case run(Handler)
    }

    /// The actions that an event causes: at most two, and then the handlers to run. Unlike an array of actions, it
    /// allocates no memory.
    struct Actions: Sequence, IteratorProtocol {
        private var first: Action?
        private var second: Action?
        private var handlers: ArraySlice<Handler>

        init(_ first: Action? = nil, _ second: Action? = nil, running handlers: [Handler] = []) {
            (self.first, self.second) = first == nil ? (second, nil) : (first, second)
            self.handlers = handlers[...]
        }

        mutating func next() -> Action? {
            guard let action = first else { return handlers.popFirst().map { .run($0) } }
            (first, second) = (second, nil)
            return action
        }
    }

    /// How a request ended.
    enum Ending {
        case completed
        case failed(any Error)
        /// The request was cancelled or refused, or its session was released. If the attempt had failed by then, its error is
        /// included.
        case interrupted(Interruption, (any Error)?)
    }

    private enum Phase {
        case created
        case preparing
        case sending
        case validating
        case deciding(any Error)
        case waiting
        /// The failed request is offered to an owner, which may finish the request.
        case offered(any Error)
        /// An owner has stored the request and will finish it.
        case queued(any Error)
        case finished
    }

    private var phase = Phase.created
    private(set) var isSuspended = true
    /// The action that waits until the request is resumed.
    private var held: Action?
    private var interruption: Interruption?
    private var handlers: [Handler] = []
    /// How the request ended, as long as an addition can still change the ending. `nil` if a handler was run or the
    /// request was interrupted.
    private var amendableEnding: Ending?
    /// The number of the current attempt, beginning with 1; 0 before the request is started.
    private(set) var attempt = 0

    /// Whether the request was cancelled or refused, or lost its session. It then ends, whatever events follow.
    var isInterrupted: Bool { interruption != nil }

    var isFinished: Bool {
        if case .finished = phase { true } else { false }
    }

    /// Whether the request has finished and can no longer be amended.
    var isSettled: Bool { isFinished && amendableEnding == nil }

    /// The state that the program sees.
    var summary: Request.State {
        switch phase {
        case .finished: interruption == .cancelled ? .cancelled : .finished
        case _ where interruption == .cancelled: .cancelled
        case .created: .initialized
        case .queued: .queued
        default: isSuspended ? .suspended : .resumed
        }
    }

    mutating func handle(_ event: Event) -> Actions {
        switch event {
        case .resumed: resumed()
        case .suspended: suspended()
        case .interrupted(let interruption): interrupted(by: interruption)
        case .prepared(attempt, let failure): prepared(failure)
        case .ended(attempt, let failure): ended(failure)
        case .validated(attempt, let failure): validated(failure)
        case .decided(attempt, let decision): decided(decision)
        case .waited(attempt): waited()
        case .queued(attempt): queued()
        case .answered(attempt, let failure): answered(failure)
        case .declined(attempt): declined()
        case .added(let handler): added(handler)
        case .amended(let amendment): amended(amendment)
        // The event belongs to an earlier attempt.
        case .prepared, .ended, .validated, .decided, .waited, .queued, .answered, .declined: Actions()
        }
    }

    // MARK: Control and handlers

    private mutating func resumed() -> Actions {
        guard isSuspended, !isFinished else { return Actions() }
        isSuspended = false
        switch phase {
        case .created: return begin()
        case .sending where held == nil: return Actions(.unpause)
        default:
            defer { held = nil }
            return Actions(held)
        }
    }

    private mutating func suspended() -> Actions {
        guard !isSuspended, !isFinished else { return Actions() }
        isSuspended = true
        if case .sending = phase { return Actions(.pause) }
        return Actions()
    }

    /// Records the first interruption and ignores later ones. If an attempt is running, the request finishes only when
    /// the attempt reports its end, because only the attempt knows how far its transfer came.
    private mutating func interrupted(by interruption: Interruption) -> Actions {
        guard !isFinished, self.interruption == nil else { return Actions() }
        self.interruption = interruption
        switch phase {
        case .sending where held == nil: return Actions(.stop)
        case .validating: return Actions()
        case .deciding(let error): return finish(.interrupted(interruption, error))
        case .offered(let error), .queued(let error):
            return finish(.interrupted(interruption, error), after: .withdraw(interruption))
        default: return finish(.interrupted(interruption, nil))
        }
    }

    private mutating func added(_ handler: Handler) -> Actions {
        guard isFinished else {
            handlers.append(handler)
            return Actions()
        }
        amendableEnding = nil
        return Actions(.run(handler))
    }

    /// Treats an addition as if it had been made before the end, as long as no handler has run.
    private mutating func amended(_ amendment: Amendment) -> Actions {
        switch (amendment, amendableEnding) {
        case (.validator, .completed):
            amendableEnding = nil
            phase = .validating
            return Actions(.validate(attempt: attempt))
        case (.credential, .completed), (.credential, .failed):
            amendableEnding = nil
            phase = .preparing
            return unlessSuspended(.prepare(attempt: attempt))
        case (.owner, .failed(let error)):
            amendableEnding = nil
            return offer(error)
        default: return Actions()
        }
    }

    // MARK: One attempt

    private mutating func begin() -> Actions {
        attempt += 1
        phase = .preparing
        return Actions(.prepare(attempt: attempt))
    }

    private mutating func prepared(_ failure: (any Error)?) -> Actions {
        guard case .preparing = phase else { return Actions() }
        // In a retry the retrier is not asked, or an adapter that always throws could be called forever.
        if let failure { return attempt == 1 ? failed(failure) : offer(failure) }
        phase = .sending
        return unlessSuspended(.send(attempt: attempt))
    }

    private mutating func ended(_ failure: (any Error)?) -> Actions {
        guard case .sending = phase else { return Actions() }
        if let interruption { return finish(.interrupted(interruption, failure)) }
        if let failure { return failed(failure) }
        phase = .validating
        return Actions(.validate(attempt: attempt))
    }

    private mutating func validated(_ failure: (any Error)?) -> Actions {
        guard case .validating = phase else { return Actions() }
        if let interruption { return finish(.interrupted(interruption, failure)) }
        if let failure { return failed(failure) }
        return finish(.completed)
    }

    // MARK: Retries

    private mutating func failed(_ error: any Error) -> Actions {
        phase = .deciding(error)
        return Actions(.askRetrier(attempt: attempt, error))
    }

    private mutating func decided(_ decision: RetryDecision) -> Actions {
        guard case .deciding(let error) = phase else { return Actions() }
        switch decision {
        case .giveUp(let replacement): return offer(replacement ?? error)
        case .retry(let delay):
            phase = .waiting
            return delay > .zero ? Actions(.wait(attempt: attempt, delay)) : waited()
        }
    }

    private mutating func waited() -> Actions {
        guard case .waiting = phase else { return Actions() }
        attempt += 1
        phase = .preparing
        return unlessSuspended(.prepare(attempt: attempt))
    }

    private mutating func unlessSuspended(_ action: Action) -> Actions {
        guard isSuspended else { return Actions(action) }
        held = action
        return Actions()
    }

    // MARK: Failed-request owners

    private mutating func offer(_ error: any Error) -> Actions {
        phase = .offered(error)
        return Actions(.offer(attempt: attempt, error))
    }

    private mutating func queued() -> Actions {
        if case .offered(let error) = phase { phase = .queued(error) }
        return Actions()
    }

    /// Ends the request as its owner decided. Validators and credentials that are added later have no effect.
    private mutating func answered(_ failure: (any Error)?) -> Actions {
        switch phase {
        case .offered, .queued: break
        default: return Actions()
        }
        let actions = finish(failure.map(Ending.failed) ?? .completed)
        amendableEnding = nil
        return actions
    }

    private mutating func declined() -> Actions {
        switch phase {
        case .offered(let error), .queued(let error): return finish(.failed(error))
        default: return Actions()
        }
    }

    // MARK: Finishing

    /// - Parameter first: The action before the end; `nil` for none.
    private mutating func finish(_ ending: Ending, after first: Action? = nil) -> Actions {
        phase = .finished
        held = nil
        amendableEnding = handlers.isEmpty && interruption == nil ? ending : nil
        defer { handlers = [] }
        return Actions(first, .finish(ending), running: handlers)
    }
}

/// The decision whether a failed attempt is retried.
enum RetryDecision: Sendable {
    case retry(after: Duration)
    /// No retry. The error replaces the error of the attempt, unless it is `nil`.
    case giveUp((any Error)?)
}
