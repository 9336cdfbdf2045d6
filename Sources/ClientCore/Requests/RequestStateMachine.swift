/// The state machine of one request: its attempts, what happens after each, and the handlers that wait for the
/// end.
///
/// A value without I/O. It guarantees, for any order of events:
/// - Each handler is run exactly once, in the order the handlers were added.
/// - Nothing is sent after ``Event/interrupted(_:)``.
/// - An owner that has taken the request is notified of every end that it did not cause itself.
struct RequestStateMachine<Handler> {
    /// The reasons to end a request from outside.
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
        /// The owner has finished the failed request, with a response or with another failure.
        case answered(attempt: Int, failure: (any Error)?)
        /// Every owner has declined or released the failed request.
        case declined(attempt: Int)
        case added(Handler)
        /// Something was added to the request, which may already have finished.
        case amended(Amendment)
    }

    /// What a chain of calls may still add after the request has finished, when the network was faster.
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
        /// Notify the owner that has the request that it is over.
        case withdraw(Interruption)
        case finish(Ending)
        case run(Handler)
    }

    /// How a request ended.
    enum Ending {
        case completed
        case failed(any Error)
        /// Ended by cancellation or with the session. Has the attempt's error if the attempt had failed before.
        case interrupted(Interruption, (any Error)?)
    }

    private enum Phase {
        case created
        case preparing
        case sending
        case validating
        case deciding(any Error)
        case waiting
        /// An owner may finish the request.
        case offered(any Error)
        case finished
    }

    private var phase = Phase.created
    private(set) var isSuspended = true
    /// The action to perform when the request is resumed.
    private var held: Action?
    private var interruption: Interruption?
    private var handlers: [Handler] = []
    /// How the request ended, while an addition can still change that: no handler has run and nothing interrupted
    /// it.
    private var amendableEnding: Ending?
    /// The number of attempts begun.
    private(set) var attempt = 0

    /// Whether the request will end regardless of other events.
    var isInterrupted: Bool { interruption != nil }

    var isFinished: Bool {
        if case .finished = phase { true } else { false }
    }

    /// Whether the request has finished and can no longer be amended.
    var isSettled: Bool { isFinished && amendableEnding == nil }

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
        case .answered(attempt, let failure): answered(failure)
        case .declined(attempt): declined()
        case .added(let handler): added(handler)
        case .amended(let amendment): amended(amendment)
        // Ignores an answer that concerns an earlier attempt or was given twice.
        case .prepared, .ended, .validated, .decided, .waited, .answered, .declined: []
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

    /// Records the first interruption; later ones are ignored. A running attempt reports its own end, because
    /// only it knows how far the transfer came.
    private mutating func interrupted(by interruption: Interruption) -> [Action] {
        guard !isFinished, self.interruption == nil else { return [] }
        self.interruption = interruption
        switch phase {
        case .sending where held == nil: return [.stop]
        case .validating: return []
        case .deciding(let error): return finish(.interrupted(interruption, error))
        case .offered(let error):
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

    /// Until a handler has run, an addition counts as if it had been made before the end.
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
        if let failure { return failed(failure) }
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

    /// The owner's answer is final: validators and credentials added later do not change it.
    private mutating func answered(_ failure: (any Error)?) -> [Action] {
        guard case .offered = phase else { return [] }
        let actions = finish(failure.map(Ending.failed) ?? .completed)
        amendableEnding = nil
        return actions
    }

    private mutating func declined() -> [Action] {
        guard case .offered(let error) = phase else { return [] }
        return finish(.failed(error))
    }

    // MARK: Finishing

    private mutating func finish(_ ending: Ending) -> [Action] {
        phase = .finished
        held = nil
        amendableEnding = handlers.isEmpty && interruption == nil ? ending : nil
        defer { handlers = [] }
        return [.finish(ending)] + handlers.map { .run($0) }
    }
}

/// The decision about a failed attempt.
enum RetryDecision: Sendable {
    case retry(after: Duration)
    /// Gives up. The error, if any, replaces the attempt's own.
    case giveUp((any Error)?)
}
