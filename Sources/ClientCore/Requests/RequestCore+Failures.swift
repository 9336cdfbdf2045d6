internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

// The decision whether a failed attempt is retried, and the wait before the next attempt.

extension RequestCore {
    func askRetrier(_ attempt: Int, about error: any Error) {
        let hooks = context.hooks
        guard plan.policy.asksRetrier, plan.original.isSuccess, !error.isCancellation,
            !(error is UnsentRequest), let session = context.manager, let request
        else { return handle(.decided(attempt: attempt, .giveUp(nil))) }
        guard let retrier = hooks.retrier else {
            return askInterceptor(attempt, about: error)
        }
        // Weak, so that a completion that the retrier keeps does not keep a finished request alive.
        let answer = DelayedAnswer<Duration?>(default: nil) { [weak self] delay in
            self?.perform { core in
                guard let delay else { return core.askInterceptor(attempt, about: error) }
                core.decide(attempt, .retry(after: delay), about: error)
            }
        }
        retrier.should(session, retry: request, with: error) { shouldRetry, delay in
            answer.give(shouldRetry ? Duration(seconds: delay) : nil)
        }
    }

    private func askInterceptor(_ attempt: Int, about error: any Error) {
        guard let interceptor = context.hooks.interceptor else { return waitForPath(attempt, after: error) }
        guard let session = context.manager, let request, !state.isFinished else {
            return handle(.decided(attempt: attempt, .giveUp(nil)))
        }
        let ask = Self.retryQuery(to: interceptor, about: request, of: session, error)
        work = Task {
            let result = await ask()
            perform { core in
                if case .doNotRetry = result { return core.waitForPath(attempt, after: error) }
                core.decide(attempt, RetryDecision(result), about: error)
            }
        }
    }

    private static func retryQuery(
        to interceptor: any RequestInterceptor,
        about request: Request,
        of session: SessionManager,
        _ error: any Error
    ) -> @Sendable () async -> RetryResult {
        guard let interceptor = interceptor as? any SessionIndependentInterceptor else {
            return { await interceptor.retry(request, for: session, dueTo: error) }
        }
        let paths = session.context.paths
        return { await interceptor.retry(request, paths, dueTo: error) }
    }

    /// Implements ``SessionManager/waitsForConnectivity``.
    private func waitForPath(_ attempt: Int, after error: any Error) {
        guard let retrier = context.hooks.connectivityRetrier, let request, attempt == state.attempt,
            !state.isFinished
        else { return handle(.decided(attempt: attempt, .giveUp(nil))) }
        let left = (options.totalTimeoutDuration ?? context.settings.totalTimeout) - outcome.clock.elapsed
        let failed = FailedAttempt(request, error)
        work = Task { [paths = context.paths] in
            let delay = await retrier.delay(after: failed, paths, waitingAtMost: left)
            let decision: RetryDecision = delay.map { .retry(after: $0) } ?? .giveUp(nil)
            perform { $0.decide(attempt, decision, about: error) }
        }
    }

    private func decide(_ attempt: Int, _ decision: RetryDecision, about error: any Error) {
        if case .retry(let delay) = decision, attempt == state.attempt, !state.isFinished {
            let wasSent = (error.transferFailure?.bytesSent ?? 0) > 0
            if outcome.head != nil || wasSent || current.hasEarlierHops { wasReceived = true }
            notifyMonitors { $0.request($1, willRetryAfter: delay.inSeconds, dueTo: error) }
        }
        handle(.decided(attempt: attempt, decision))
    }

    func wait(_ attempt: Int, _ delay: Duration) {
        // Weak, so that a pending delay does not keep a finished request alive.
        queue.after(delay) { [weak self] in
            self?.assumeIsolated { $0.handle(.waited(attempt: attempt)) }
        }
    }
}

extension FailedAttempt {
    init(_ request: Request, _ error: any Error) {
        let task = request.task
        let sent = [task?.originalRequest, task?.currentRequest].compactMap(\.self)
        self.init(
            error: error,
            url: sent.last?.url,
            retryCount: request.retryCount,
            hasEarlierTransfers: (request.metrics?.transactionMetrics.count ?? 0) > 1,
            mayBeSentTwice: sent.allSatisfy(\.mayBeSentTwice)
        )
    }
}

extension URLRequest {
    fileprivate var mayBeSentTwice: Bool {
        HTTPMethod.isIdempotent(httpMethod ?? "GET")
            || value(forHTTPHeaderField: TransferRequest.Header.idempotencyKey) != nil
    }
}

extension RetryDecision {
    fileprivate init(_ result: RetryResult) {
        self =
            switch result {
            case .retry: .retry(after: .zero)
            case .retryWithDelay(let delay): .retry(after: Duration(seconds: delay))
            case .doNotRetry: .giveUp(nil)
            case .doNotRetryWithError(let error): .giveUp(error)
            }
    }
}

// Offering a failed request to its owners.

extension RequestCore {
    func setOwner(_ owner: any FailedRequestOwner) {
        guard !state.isSettled, !isRefused(by: owner) else { return }
        ownerOffer.setOwn(owner)
        if state.attempt == 0, plan.policy.asksRetrier, let request = plan.original.value {
            ownerOffer.addedFields = owner.addedFields(for: request)
        }
        amend(with: .owner)
    }

    /// Ends the request if its owner can never store it, and returns whether it did.
    ///
    /// A request that has already ended keeps its outcome.
    private func isRefused(by owner: any FailedRequestOwner) -> Bool {
        guard plan.policy.asksRetrier, !state.isFinished, !state.isInterrupted,
            let request = plan.original.value,
            let refusal = owner.refusal(of: request, hasCredential: snapshot.credential != nil)
        else { return false }
        snapshot.change { $0.ownerRefusal = refusal }
        handle(.interrupted(.refused))
        return true
    }

    /// The request as the program created it, with the header fields of its owner. Each attempt adapts it again.
    var original: Result<URLRequest, any Error> {
        plan.original.map { $0.adding(ownerOffer.addedFields) }
    }

    /// Offers the failure to the next owner that has not received an offer. When all owners have declined, the request
    /// fails with the error.
    func offer(_ attempt: Int, after error: any Error) {
        guard plan.policy.asksRetrier, !error.isCancellation, let original = original.value,
            let owner = ownerOffer.nextOwner(context.hooks.failedRequestOwner)
        else { return handle(.declined(attempt: attempt)) }
        let failed = FailedRequest(
            original,
            outcome,
            upload: plan.upload ?? UploadBody(streamOf: original, after: current.upload),
            error: error,
            retryCount: attempt - 1,
            wasReceived: wasReceived || current.hasEarlierHops,
            maximumDataBytes: plan.makeSink == nil ? maximumDataBytes : nil,
            httpVersion: options.httpVersion,
            hasCredential: snapshot.credential != nil,
            queued: { receipt in self.perform { $0.wasQueued(attempt, receipt) } }
        ) { answer in
            self.perform { $0.answered(attempt, answer, after: error) }
        }
        ownerOffer.begin(failed)
        owner.offer(failed)
    }

    /// Calls `handler` when an owner reports that it has stored the request, or immediately if an owner has already
    /// reported it. Releases `handler` if no owner can report it any more.
    func addQueuedHandler(_ handler: @escaping OwnerOffer.QueuedHandler) {
        if let receipt = ownerOffer.receipt { return handler(receipt) }
        if !state.isSettled { ownerOffer.addQueuedHandler(handler) }
    }

    private func wasQueued(_ attempt: Int, _ receipt: any Sendable) {
        guard attempt == state.attempt, !state.isFinished else { return }
        ownerOffer.store(receipt)
        handle(.queued(attempt: attempt))
        for handler in ownerOffer.takeQueuedHandlers() { handler(receipt) }
    }

    /// Ends the offer because the request has ended without its owner.
    func withdraw(_ withdrawal: FailedRequest.Withdrawal) {
        let abandonment = ownerOffer.failed?.withdraw(withdrawal)
        ownerOffer.withdrawn(abandonment)
    }

    private func answered(_ attempt: Int, _ answer: FailedRequest.Answer, after error: any Error) {
        // If the request has finished in the meantime, its sink no longer accepts a response.
        guard !state.isFinished else { return }
        ownerOffer.failed?.settle()
        switch answer {
        case .response(let response, let error):
            handle(.answered(attempt: attempt, failure: take(response, failingWith: error)))
        case .failure(let error, let refusal):
            snapshot.change { $0.ownerRefusal = refusal }
            handle(.answered(attempt: attempt, failure: error))
        case .declined: offer(attempt, after: error)
        }
    }

    /// Delivers the owner's response as if it came from a transfer.
    ///
    /// - Returns: The owner's error, a validator's error, or the error that prevented the delivery, for example a full
    ///   disk; `nil` after a success.
    private func take(_ response: OwnerResponse, failingWith error: (any Error)?) -> (any Error)? {
        do {
            try write(response)
            let failure = error ?? validationFailure()
            if failure == nil { try sink.accept(outcome.head) }
            return failure
        } catch {
            try? sink.end(error)
            return error
        }
    }

    private func write(_ response: OwnerResponse) throws {
        guard let request = outcome.request ?? plan.original.value else { return }
        let head = ResponseHead(response.head, from: response.url)
        _ = try sink.prepare(for: request)
        // A sink asks to send the request again only after a response to its own range request. The owner requested the
        // whole body, so such a response is an error.
        guard case .accept = try sink.begin(head) else {
            let message = "unexpected HTTP \(head.status): no range was requested"
            throw URLError(.badServerResponse, message: message)
        }
        outcome.head = head
        outcome.clock.responseBegan()
        if let metrics = response.metrics { outcome.metrics = LazyMetrics(value: metrics) }
        let metrics = outcome.metrics
        snapshot.change { values in
            values.head = head
            values.metrics = metrics
        }
        try sink.write(BodyPiece(Array(response.body)))
        downloadProgress.restart()
        downloadProgress.update(Int64(response.body.count), of: Int64(response.body.count))
        try sink.end(nil)
    }
}

extension FailedRequest.Withdrawal {
    init(_ interruption: RequestStateMachine<RequestCore.Handler>.Interruption) {
        self =
            switch interruption {
            // The session's owner, which may hold the failed request, must not send it either.
            case .cancelled, .refused: .cancelled
            case .sessionDropped: .sessionDropped
            }
    }
}
