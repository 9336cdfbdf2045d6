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

    /// How a request ended.
    enum Ending {
        case completed
        case failed(any Error)
        /// The request was cancelled, or its session was released. If the attempt had failed by then, its error is
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

    /// Whether the request was cancelled or lost its session. It then ends, whatever events follow.
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

    mutating func handle(_ event: Event) -> [Action] {
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
        case .prepared, .ended, .validated, .decided, .waited, .queued, .answered, .declined: []
        }
    }

    // MARK: Control and handlers

    private mutating func resumed() -> [Action] {
        guard isSuspended, !isFinished else { return [] }
        isSuspended = false
        switch phase {
        case .created: return begin()
        case .sending where held == nil: return [.unpause]
        default:
            defer { held = nil }
            return held.map { [$0] } ?? []
        }
    }

    private mutating func suspended() -> [Action] {
        guard !isSuspended, !isFinished else { return [] }
        isSuspended = true
        if case .sending = phase { return [.pause] }
        return []
    }

    /// Records the first interruption and ignores later ones. If an attempt is running, the request finishes only when
    /// the attempt reports its end, because only the attempt knows how far its transfer came.
    private mutating func interrupted(by interruption: Interruption) -> [Action] {
        guard !isFinished, self.interruption == nil else { return [] }
        self.interruption = interruption
        switch phase {
        case .sending where held == nil: return [.stop]
        case .validating: return []
        case .deciding(let error): return finish(.interrupted(interruption, error))
        case .offered(let error), .queued(let error):
            return [.withdraw(interruption)] + finish(.interrupted(interruption, error))
        default: return finish(.interrupted(interruption, nil))
        }
    }

    private mutating func added(_ handler: Handler) -> [Action] {
        guard isFinished else {
            handlers.append(handler)
            return []
        }
        amendableEnding = nil
        return [.run(handler)]
    }

    /// Treats an addition as if it had been made before the end, as long as no handler has run.
    private mutating func amended(_ amendment: Amendment) -> [Action] {
        switch (amendment, amendableEnding) {
        case (.validator, .completed):
            amendableEnding = nil
            phase = .validating
            return [.validate(attempt: attempt)]
        case (.credential, .completed), (.credential, .failed):
            amendableEnding = nil
            phase = .preparing
            return unlessSuspended(.prepare(attempt: attempt))
        case (.owner, .failed(let error)):
            amendableEnding = nil
            return offer(error)
        default: return []
        }
    }

    // MARK: One attempt

    private mutating func begin() -> [Action] {
        attempt += 1
        phase = .preparing
        return [.prepare(attempt: attempt)]
    }

    private mutating func prepared(_ failure: (any Error)?) -> [Action] {
        guard case .preparing = phase else { return [] }
        // In a retry the retrier is not asked, or an adapter that always throws could be called forever.
        if let failure { return attempt == 1 ? failed(failure) : offer(failure) }
        phase = .sending
        return unlessSuspended(.send(attempt: attempt))
    }

    private mutating func ended(_ failure: (any Error)?) -> [Action] {
        guard case .sending = phase else { return [] }
        if let interruption { return finish(.interrupted(interruption, failure)) }
        if let failure { return failed(failure) }
        phase = .validating
        return [.validate(attempt: attempt)]
    }

    private mutating func validated(_ failure: (any Error)?) -> [Action] {
        guard case .validating = phase else { return [] }
        if let interruption { return finish(.interrupted(interruption, failure)) }
        if let failure { return failed(failure) }
        return finish(.completed)
    }

    // MARK: Retries

    private mutating func failed(_ error: any Error) -> [Action] {
        phase = .deciding(error)
        return [.askRetrier(attempt: attempt, error)]
    }

    private mutating func decided(_ decision: RetryDecision) -> [Action] {
        guard case .deciding(let error) = phase else { return [] }
        switch decision {
        case .giveUp(let replacement): return offer(replacement ?? error)
        case .retry(let delay):
            phase = .waiting
            return delay > .zero ? [.wait(attempt: attempt, delay)] : waited()
        }
    }

    private mutating func waited() -> [Action] {
        guard case .waiting = phase else { return [] }
        attempt += 1
        phase = .preparing
        return unlessSuspended(.prepare(attempt: attempt))
    }

    private mutating func unlessSuspended(_ action: Action) -> [Action] {
        guard isSuspended else { return [action] }
        held = action
        return []
    }

    // MARK: Failed-request owners

    private mutating func offer(_ error: any Error) -> [Action] {
        phase = .offered(error)
        return [.offer(attempt: attempt, error)]
    }

    private mutating func queued() -> [Action] {
        if case .offered(let error) = phase { phase = .queued(error) }
        return []
    }

    /// Ends the request as its owner decided. Validators and credentials that are added later have no effect.
    private mutating func answered(_ failure: (any Error)?) -> [Action] {
        switch phase {
        case .offered, .queued: break
        default: return []
        }
        let actions = finish(failure.map(Ending.failed) ?? .completed)
        amendableEnding = nil
        return actions
    }

    private mutating func declined() -> [Action] {
        switch phase {
        case .offered(let error), .queued(let error): return finish(.failed(error))
        default: return []
        }
    }

    // MARK: Finishing

    private mutating func finish(_ ending: Ending) -> [Action] {
        phase = .finished
        held = nil
        amendableEnding = handlers.isEmpty && interruption == nil ? ending : nil
        var actions: [Action] = []
        actions.reserveCapacity(1 + handlers.count)
        actions.append(.finish(ending))
        for handler in handlers { actions.append(.run(handler)) }
        handlers = []
        return actions
    }
}

/// The decision whether a failed attempt is retried.
enum RetryDecision: Sendable {
    case retry(after: Duration)
    /// No retry. The error replaces the error of the attempt, unless it is `nil`.
    case giveUp((any Error)?)
}
