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
