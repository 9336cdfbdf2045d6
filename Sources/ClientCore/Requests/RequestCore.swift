internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// Runs one request: performs the actions that its ``RequestStateMachine`` decides on. It starts transfers, calls
/// adapters, validators and retriers, and delivers the outcome to the handlers.
///
/// All work runs on the request's own queue, in the order it was submitted.
actor RequestCore {
    typealias Handler = @Sendable (RequestOutcome) -> Void
    /// Returns an error if it rejects the response, or `nil`.
    typealias Validator = @Sendable (RequestOutcome) -> (any Error)?

    nonisolated let queue = SerialQueue()
    nonisolated let identifier: Int
    nonisolated let context: SessionContext
    nonisolated let plan: RequestPlan
    /// The request's own options, over the session's options at the time the request was created.
    nonisolated let options: RequestOptions
    nonisolated let snapshot: RequestSnapshot
    nonisolated let uploadProgress = ProgressReport()
    nonisolated let downloadProgress = ProgressReport()

    /// The request, passed to delegates, monitors and retriers. Its session retains it until it has finished.
    weak var request: Request?

    var state = RequestStateMachine<Handler>()
    var outcome = RequestOutcome()
    var sink: any ResponseSink
    var hop: Hop?
    /// The number of hops in all attempts.
    var hops = 0
    /// The progress of the current or last attempt.
    var current = RequestAttempt()
    /// The owners that the request is offered to if it fails.
    var owners = FailureOwners()
    /// The failed request that an owner was given. Weak, because the owner declines it by releasing it.
    weak var offered: FailedRequest?

    private nonisolated let firstRequest: Result<URLRequest, any Error>
    private var validators: [Validator] = []
    private var work: Task<Void, Never>?

    nonisolated var unownedExecutor: UnownedSerialExecutor { queue.asUnownedSerialExecutor() }

    /// - Parameter firstRequest: The adapted request that the first attempt sends.
    init(_ plan: RequestPlan, firstRequest: Result<URLRequest, any Error>, context: SessionContext) {
        self.plan = plan
        self.context = context
        identifier = context.nextIdentifier()
        self.firstRequest = firstRequest
        options = plan.options.over(context.hooks.options)
        sink = plan.sink(options.maximumDataBytes ?? RequestOptions.defaultMaximumDataBytes)
        snapshot = RequestSnapshot(firstRequest.value)
    }

    nonisolated func perform(_ body: @escaping @Sendable (isolated RequestCore) -> Void) {
        queue.async { self.assumeIsolated { body($0) } }
    }

    /// Like ``perform(_:)``, for work that has no effect while a transfer is running. It does not wake a thread
    /// then.
    nonisolated func performDeferred(_ body: @escaping @Sendable (isolated RequestCore) -> Void) {
        queue.asyncDeferred { self.assumeIsolated { body($0) } }
    }

    /// Sets the request, and starts it if `starts` is true.
    nonisolated func begin(_ request: Request, starts: Bool) {
        guard !mayRunUserCode else { return perform { $0.begin(request, starts) } }
        queue.begin { assumeIsolated { $0.begin(request, starts) } }
    }

    private func begin(_ request: Request, _ starts: Bool) {
        self.request = request
        if starts { resume() }
    }

    /// Whether sending the request may call the program's code or block on a disk. Such a request does not
    /// begin on the caller's thread, which may hold a lock. It also does not begin on the engine's thread,
    /// where a policy that is being evaluated may create a request.
    private nonisolated var mayRunUserCode: Bool {
        firstRequest.error != nil || plan.upload != nil || plan.makeSink != nil || context.mayRunUserCode
            || context.settings.cookies?.isBusy ?? false || context.engine.isCurrent
    }

    func handle(_ event: RequestStateMachine<Handler>.Event) {
        for action in state.handle(event) { perform(action) }
        if state.isSettled { releaseClosures() }
    }

    /// Releases the program's closures, which may capture the request and form a retain cycle.
    func releaseClosures() {
        validators = []
        owners = FailureOwners()
        sink.releaseClosures()
        uploadProgress.releaseClosures()
        downloadProgress.releaseClosures()
    }

    func resume() {
        guard state.isSuspended, !state.isFinished else { return }
        notifyMonitors { $0.requestDidResume($1) }
        handle(.resumed)
    }

    func suspend() {
        guard !state.isSuspended, !state.isFinished else { return }
        notifyMonitors { $0.requestDidSuspend($1) }
        handle(.suspended)
    }

    func cancel() {
        guard !state.isInterrupted, !state.isFinished else { return }
        notifyMonitors { $0.requestDidCancel($1) }
        handle(.interrupted(.cancelled))
    }

    func addValidator(_ validator: @escaping Validator) {
        validators.append(validator)
        amend(with: .validator)
    }

    /// Applies an addition from a chain of calls, although the request may have finished in the meantime.
    func amend(with amendment: RequestStateMachine<Handler>.Amendment) {
        let wasFinished = state.isFinished
        handle(.amended(amendment))
        if wasFinished, !state.isFinished, let request { context.add(request) }
    }

    func notifyMonitors(_ body: (any EventMonitor, Request) -> Void) {
        let monitors = context.monitors
        guard !monitors.isEmpty, let request else { return }
        for monitor in monitors { body(monitor, request) }
    }

    private func perform(_ action: RequestStateMachine<Handler>.Action) {
        switch action {
        case .prepare(let attempt): prepare(attempt)
        case .send: send()
        case .pause: hop?.control.suspend(true)
        case .unpause: unpause()
        case .stop: stop()
        case .validate(let attempt): validate(attempt)
        case .askRetrier(let attempt, let error): askRetrier(attempt, about: error)
        case .wait(let attempt, let delay): wait(attempt, delay)
        case .offer(let attempt, let error): offer(attempt, after: error)
        case .withdraw(let interruption): offered?.withdraw(.init(interruption))
        case .finish(let ending): finish(ending)
        case .run(let handler):
            // Once a handler is called nothing is sent again, so a temporary upload file can be removed.
            plan.upload?.release()
            run(handler)
        }
    }

    private func run(_ handler: Handler) {
        guard !RequestFault.dropsHandler.occurs else { return }
        handler(outcome)
        if RequestFault.doublesHandler.occurs { handler(outcome) }
    }

    // MARK: Preparing

    private func prepare(_ attempt: Int) {
        outcome.head = nil
        owners.begin()
        guard case .success(let original) = plan.original else {
            return handle(.prepared(attempt: attempt, failure: plan.original.error))
        }
        let hooks = context.hooks
        let adapted = attempt == 1 ? firstRequest : Result { try hooks.adapter?.adapt(original) ?? original }
        guard let interceptor = hooks.interceptor, let request = adapted.value else {
            return prepared(attempt, adapted)
        }
        guard let session = context.manager else {
            return prepared(attempt, .failure(AFError.sessionDeinitialized))
        }
        work = Task {
            let adapted = await Self.result { try await interceptor.adapt(request, for: session) }
            perform { $0.prepared(attempt, adapted) }
        }
    }

    private static func result<Value>(_ body: () async throws -> Value) async -> Result<Value, any Error> {
        do { return .success(try await body()) } catch { return .failure(error) }
    }

    private func prepared(_ attempt: Int, _ adapted: Result<URLRequest, any Error>) {
        guard attempt == state.attempt, !state.isFinished else { return }
        if let request = adapted.value { outcome.request = request }
        let request = outcome.request
        snapshot.change { values in
            values.request = request
            values.current = request
            values.head = nil
            values.retryCount = attempt - 1
        }
        handle(.prepared(attempt: attempt, failure: adapted.error))
    }

    // MARK: End of an attempt

    func attemptEnded(_ failure: (any Error)?) {
        hop = nil
        queue.setAwaiting(false)
        outcome.clock.complete()
        // A body that was complete only after the cancellation counts as interrupted, so it can be resumed like
        // a partial one.
        let interrupted = state.isInterrupted ? URLError(.cancelled) : nil
        let failure = failure ?? interrupted ?? Result { try sink.end(nil) }.error
        if failure != nil { try? sink.end(failure) }
        publishMetrics()
        let attempt = state.attempt
        if let didComplete = context.delegate.taskDidComplete, let session = context.manager {
            didComplete(session, task, failure)
        }
        notifyMonitors { $0.request($1, didEndAttempt: attempt, error: failure) }
        handle(.ended(attempt: attempt, failure: failure))
    }

    private func validate(_ attempt: Int) {
        outcome.body = sink.body
        for validator in validators {
            guard let failure = validator(outcome) else { continue }
            return handle(.validated(attempt: attempt, failure: failure))
        }
        let failure = Result { try sink.accept(outcome.head) }.error
        handle(.validated(attempt: attempt, failure: failure))
    }

    private func askRetrier(_ attempt: Int, about error: any Error) {
        let hooks = context.hooks
        guard plan.policy.asksRetrier, plan.original.isSuccess, !error.isCancellation,
            let session = context.manager, let request
        else { return handle(.decided(attempt: attempt, .giveUp(nil))) }
        guard let retrier = hooks.retrier else {
            return askInterceptor(attempt, about: error)
        }
        let retryCompletion = RetryCompletion { delay in
            self.perform { core in
                guard let delay else { return core.askInterceptor(attempt, about: error) }
                core.decide(attempt, .retry(after: delay), about: error)
            }
        }
        retrier.should(session, retry: request, with: error, completion: retryCompletion.closure)
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
            notifyMonitors { $0.request($1, willRetryAfter: delay.inSeconds, dueTo: error) }
        }
        handle(.decided(attempt: attempt, decision))
    }

    private func wait(_ attempt: Int, _ delay: Duration) {
        // Weak, so that a pending delay does not keep a finished request alive.
        queue.after(delay) { [weak self] in
            self?.assumeIsolated { $0.handle(.waited(attempt: attempt)) }
        }
    }

    // MARK: End of the request

    private func finish(_ ending: RequestStateMachine<Handler>.Ending) {
        work?.cancel()
        work = nil
        outcome.clock.complete()
        outcome.error = error(of: ending)
        outcome.body = sink.finish(outcome.error)
        snapshot.change { $0.resumeData = outcome.body.resumeData }
        uploadProgress.end()
        downloadProgress.end()
        notifyMonitors { $0.requestDidFinish($1, error: outcome.error) }
        if let request, !RequestFault.keepsRequest.occurs { context.remove(request.identifier) }
    }

    private func error(of ending: RequestStateMachine<Handler>.Ending) -> (any Error)? {
        switch ending {
        case .completed: nil
        case .failed(let error): error
        case .interrupted(.cancelled, let failure): URLError.cancelled(after: failure)
        case .interrupted(.sessionDropped, _): AFError.sessionDeinitialized
        }
    }
}

extension FailedAttempt {
    init(_ request: Request, _ error: any Error) {
        self.init(error: error, url: request.task?.currentRequest?.url, retryCount: request.retryCount)
    }
}

extension Error {
    /// Whether the program cancelled the transfer. If the request itself was not cancelled, a delegate closure
    /// did it.
    var isCancellation: Bool { (self as? URLError)?.code == .cancelled }
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

extension URLError {
    /// Returns the error of a cancelled request. A transfer's own error is kept if the cancellation ended the
    /// transfer, because it says how far the transfer had come.
    fileprivate static func cancelled(after failure: (any Error)?) -> any Error {
        let cancelled: Int32 = 42
        guard let failure, failure.transferFailure?.code == cancelled else { return URLError(.cancelled) }
        return failure
    }
}
