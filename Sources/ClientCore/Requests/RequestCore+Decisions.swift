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
        guard current.hop?.id == hop.id else { throw CancellationError() }
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
        return await withCheckedContinuation { continuation in
            let answer = DelayedAnswer(default: URLRequest?.some(redirection.request)) {
                continuation.resume(returning: $0)
            }
            decide(session, task, head, redirection.request) { answer.give($0) }
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
        return await withCheckedContinuation { continuation in
            let answer = DelayedAnswer(default: ResponseDisposition.allow) {
                continuation.resume(returning: $0)
            }
            decide(session, task, head) { answer.give($0) }
        }
    }
}

extension ResponseDisposition {
    fileprivate func check() throws {
        if case .cancel = self { throw URLError.requestCancelled }
    }
}
