/// The life of one request: attempts, what is asked after each of them, and who waits for the end.
///
/// A value without I/O. It promises that each handler is handed out exactly once, in the order they were
/// added, whatever else happens and in whichever order; that nothing is sent again after
/// ``Event/interrupted(_:)``; and that an owner who has taken the request hears of each end but its own.
struct RequestState<Handler> {
    /// What ends a request from outside.
    enum Interruption: Sendable {
        case cancelled
        case sessionDropped
    }

    enum Event {
        case resumed
        case suspended
        case interrupted(Interruption)
        /// Whether the attempt's request could be made.
        case prepared(attempt: Int, failure: (any Error)?)
        /// The attempt has come to an end.
        case ended(attempt: Int, failure: (any Error)?)
        /// What the validators say of a whole response.
        case validated(attempt: Int, failure: (any Error)?)
        /// What becomes of a failed attempt.
        case decided(attempt: Int, RetryDecision)
        /// The time before the next attempt has passed.
        case waited(attempt: Int)
        /// Who was offered the failed request has finished it, with a response or with another failure.
        case answered(attempt: Int, failure: (any Error)?)
        /// Nobody takes the failed request, or whoever took it has let go of it, and there is nobody left to ask.
        case declined(attempt: Int)
        case added(Handler)
        /// Something was added to a request that may have ended before it was.
        case amended(Amendment)
    }

    /// What a chain of calls may add to a request after its end, when the network was faster.
    enum Amendment {
        case validator
        case credential
        /// Who may take the request if it has failed.
        case owner
    }

    enum Action {
        /// Make the request of an attempt. Answered by ``Event/prepared(attempt:failure:)``.
        case prepare(attempt: Int)
        /// Send it. Answered by ``Event/ended(attempt:failure:)``.
        case send(attempt: Int)
        case pause
        case unpause
        /// Bring the attempt to its end, which is reported as any other.
        case stop
        case validate(attempt: Int)
        /// Ask whether to try again. Answered by ``Event/decided(attempt:_:)``.
        case askRetrier(attempt: Int, any Error)
        case wait(attempt: Int, Duration)
        /// Offer the failed request to those who may finish it, one after another. Answered by ``Event/answered(attempt:failure:)`` or
        /// ``Event/declined(attempt:)``.
        case offer(attempt: Int, any Error)
        /// Tell who was offered the request that it is over.
        case withdraw(Interruption)
        case finish(Ending)
        case run(Handler)
    }

    /// What a request came to.
    enum Ending {
        case completed
        case failed(any Error)
        /// With what the attempt had failed of, if it had.
        case interrupted(Interruption, (any Error)?)
    }

    private enum Phase {
        case created
        case preparing
        case sending
        case validating
        case deciding(any Error)
        case waiting
        /// Somebody else may finish it.
        case offered(any Error)
        case finished
    }

    private var phase = Phase.created
    private(set) var isSuspended = true
    /// What would have been done, had the request not been suspended.
    private var held: Action?
    private var interruption: Interruption?
    private var handlers: [Handler] = []
    /// How the request has ended, while nobody was told.
    private var untold: Ending?
    /// How many attempts were begun.
    private(set) var attempt = 0

    /// Whether it is to end whatever else happens.
    var isInterrupted: Bool { interruption != nil }

    var isFinished: Bool {
        if case .finished = phase { true } else { false }
    }

    /// Whether it is over for good.
    var isSettled: Bool { isFinished && untold == nil }

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
        // An answer that concerns an earlier attempt, or was given twice.
        case .prepared, .ended, .validated, .decided, .waited, .answered, .declined: []
        }
    }

    // MARK: From outside

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

    /// The first reason stands. The end of an attempt under way is its own to tell: it knows how far it came.
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
        untold = nil
        return [.run(handler)]
    }

    /// As long as nobody was told, what is added after the end counts as if it had been there before.
    private mutating func amended(_ amendment: Amendment) -> [Action] {
        switch (amendment, untold) {
        case (.validator, .completed):
            untold = nil
            phase = .validating
            return [.validate(attempt: attempt)]
        case (.credential, .completed), (.credential, .failed):
            untold = nil
            phase = .preparing
            return unlessSuspended(.prepare(attempt: attempt))
        case (.owner, .failed(let error)):
            untold = nil
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

    // MARK: The next one

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

    // MARK: Somebody else's

    private mutating func offer(_ error: any Error) -> [Action] {
        phase = .offered(error)
        return [.offer(attempt: attempt, error)]
    }

    /// The owner's word is the last: neither validators nor credentials that come late change it.
    private mutating func answered(_ failure: (any Error)?) -> [Action] {
        guard case .offered = phase else { return [] }
        let actions = finish(failure.map(Ending.failed) ?? .completed)
        untold = nil
        return actions
    }

    private mutating func declined() -> [Action] {
        guard case .offered(let error) = phase else { return [] }
        return finish(.failed(error))
    }

    // MARK: The end

    private mutating func finish(_ ending: Ending) -> [Action] {
        phase = .finished
        held = nil
        untold = handlers.isEmpty && interruption == nil ? ending : nil
        defer { handlers = [] }
        return [.finish(ending)] + handlers.map { .run($0) }
    }
}

/// What becomes of a failed attempt.
enum RetryDecision: Sendable {
    case retry(after: Duration)
    /// With an error in place of the attempt's own.
    case giveUp((any Error)?)
}
