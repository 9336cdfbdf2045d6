internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

// Decides what happens with the response of a hop. The delegate's closures decide immediately or later.

extension RequestCore {
    func decide(on response: ResponseHead, _ hop: Hop) {
        guard context.delegate.answersLater else {
            return decided(Result { try disposition(of: response, hop) }, hop)
        }
        current.beginDeciding()
        hop.control.hold(true)
        work = Task {
            let decision = await Self.result { try await self.laterDisposition(of: response, hop) }
            decided(decision, hop)
        }
    }

    private func decided(_ decision: Result<Hop.Disposition, any Error>, _ hop: Hop) {
        // The hop may have ended during the decision, because the request was cancelled or the transfer failed.
        guard current.hop?.id == hop.id else { return }
        // The task of this decision must not be cancelled by the end of the attempt, which may follow below.
        work = nil
        switch decision {
        case .success(let disposition): current.decide(disposition)
        case .failure(let error): abandonHop(error)
        }
        guard let events = current.endDeciding() else { return }
        hop.control.hold(false)
        for event in events where current.hop?.id == hop.id { received(event) }
    }

    private func disposition(of response: ResponseHead, _ hop: Hop) throws -> Hop.Disposition {
        if let redirection = try redirection(of: response, hop), let next = answer(to: redirection, response)
        {
            return try follow(next, redirection, response, hop)
        }
        let disposition = try reception(of: response, hop)
        if case .accept = disposition { try ask(response).check() }
        return disposition
    }

    /// Like ``disposition(of:_:)``, but waits for the answers of the closures with a completion.
    private func laterDisposition(of response: ResponseHead, _ hop: Hop) async throws -> Hop.Disposition {
        if let redirection = try redirection(of: response, hop) {
            let next = await laterAnswer(to: redirection, response)
            try checkIsCurrent(hop)
            if let next { return try follow(next, redirection, response, hop) }
        }
        let disposition = try reception(of: response, hop)
        if case .accept = disposition {
            try await askLater(response).check()
            try checkIsCurrent(hop)
        }
        return disposition
    }

    private func checkIsCurrent(_ hop: Hop) throws {
        guard current.hop?.id == hop.id, !Task.isCancelled else { throw CancellationError() }
    }

    /// Returns whether the response is received, or another request must be sent instead.
    private func reception(of response: ResponseHead, _ hop: Hop) throws -> Hop.Disposition {
        if let next = try answerToChallenge(response, hop) { return next }
        switch try sink.begin(response) {
        case .sendAgain: return .follow(hop.request, .withoutRange)
        case .accept: break
        }
        outcome.head = response
        outcome.clock.responseBegan()
        snapshot.change { $0.head = response }
        return .accept
    }

    // MARK: The delegate's answers

    private func answer(to redirection: Redirection, _ response: ResponseHead) -> URLRequest? {
        guard let decide = context.delegate.taskWillPerformHTTPRedirection, let session = context.manager,
            let response = response.response
        else { return redirection.request }
        return decide(session, task, response, redirection.request)
    }

    private func laterAnswer(to redirection: Redirection, _ response: ResponseHead) async -> URLRequest? {
        guard let decide = context.delegate.taskWillPerformHTTPRedirectionWithCompletion,
            let session = context.manager, let head = response.response
        else { return answer(to: redirection, response) }
        let task = task
        return await answer(default: redirection.request) {
            decide(session, task, head, redirection.request, $0)
        }
    }

    private func ask(_ response: ResponseHead) -> ResponseDisposition {
        guard let decide = context.delegate.dataTaskDidReceiveResponse, let session = context.manager,
            let response = response.response
        else { return .allow }
        return decide(session, task, response)
    }

    private func askLater(_ response: ResponseHead) async -> ResponseDisposition {
        guard let decide = context.delegate.dataTaskDidReceiveResponseWithCompletion,
            let session = context.manager, let head = response.response
        else { return ask(response) }
        let task = task
        return await answer(default: .allow) { decide(session, task, head, $0) }
    }

    /// Calls the program's code with a completion, and waits for the answer. Returns the default if the request's task
    /// is cancelled meanwhile. A completion that the program keeps then retains nothing of the request.
    private func answer<Value: Sendable>(
        default standard: Value,
        _ ask: (@escaping @Sendable (Value) -> Void) -> Void
    ) async -> Value {
        let (answers, continuation) = AsyncStream.makeStream(of: Value.self)
        ask(DelayedAnswer(default: standard) { continuation.yield($0) }.give)
        for await answer in answers { return answer }
        return standard
    }
}

extension ResponseDisposition {
    fileprivate func check() throws {
        if case .cancel = self { throw URLError.requestCancelled }
    }
}

extension FailedAttempt {
    init(_ request: Request, _ error: any Error) {
        self.init(error: error, url: request.task?.currentRequest?.url, retryCount: request.retryCount)
    }
}
