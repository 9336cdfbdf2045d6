internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// The actor that runs one request. It passes events to its ``RequestStateMachine`` and performs the actions that the
/// state machine returns: starts transfers, calls adapters, validators and retriers, and calls the handlers.
///
/// All work runs on the request's own queue, in the order in which it was submitted.
actor RequestCore {
    /// A closure that is called with the outcome of the request. It is a structure, because the generic state machine
    /// would wrap a closure in another one.
    struct Handler: Sendable {
        let body: @Sendable (RequestOutcome) -> Void
    }
    /// A check of a complete response. Returns an error to reject the response, or `nil` to accept it.
    typealias Validator = @Sendable (RequestOutcome) -> (any Error)?

    nonisolated let queue: SerialQueue
    nonisolated let identifier: Int
    nonisolated let context: SessionContext
    nonisolated let plan: RequestPlan
    /// The options of the request. An option that the request does not set has the session's value from the time when
    /// the request was created.
    nonisolated let options: RequestOptions
    /// The maximum number of bytes of a response that is kept in memory.
    nonisolated let maximumDataBytes: Int
    /// Whether the session's owner takes the request before it is sent.
    nonisolated let isTakenUnsent: Bool
    nonisolated let snapshot: RequestSnapshot
    /// The progress of an ``UploadRequest``; `nil` for other requests, which do not show it.
    nonisolated let uploadProgress: ProgressReport?
    nonisolated let downloadProgress = ProgressReport()

    /// The object that monitors and retriers receive. Its session retains it until the request has finished.
    private(set) weak var request: Request?

    private(set) var state = RequestStateMachine<Handler>()
    var outcome = RequestOutcome()
    var sink: any ResponseSink
    /// The state of the current or last attempt.
    var current = RequestAttempt()
    /// The offer of the failed request to its owners.
    var ownerOffer = OwnerOffer()
    /// Whether a server may have received an attempt that was retried.
    var wasReceived = false
    private var publishedState = Request.State.initialized

    private nonisolated let firstRequest: Result<URLRequest, any Error>
    private var validators: [Validator] = []
    var work: Task<Void, Never>?

    nonisolated var unownedExecutor: UnownedSerialExecutor { queue.asUnownedSerialExecutor() }

    /// A snapshot of the request's state, readable from any thread.
    nonisolated var task: RequestTask {
        let now = snapshot.now
        return RequestTask(
            taskIdentifier: identifier,
            state: URLSessionTask.State(now.state),
            originalRequest: now.request,
            currentRequest: now.current,
            response: now.head?.response
        )
    }

    /// - Parameters:
    ///   - firstRequest: The adapted request that the first attempt sends, or the error that prevented it. Not used if
    ///     the request's own owner adds fields to it.
    ///   - hooks: The session's hooks when the request is created.
    init(
        _ plan: RequestPlan,
        firstRequest: Result<URLRequest, any Error>,
        hooks: SessionContext.Hooks,
        context: SessionContext
    ) {
        self.plan = plan
        self.context = context
        queue = SerialQueue(context.threads)
        identifier = context.nextIdentifier()
        self.firstRequest = firstRequest
        options = plan.options.over(hooks.options)
        isTakenUnsent = plan.policy.asksRetrier && hooks.failedRequestOwner?.takesUnsentRequests ?? false
        maximumDataBytes = options.maximumDataBytes ?? RequestOptions.defaultMaximumDataBytes
        sink = plan.sink(maximumDataBytes)
        uploadProgress = plan.upload.map { _ in ProgressReport() }
        snapshot = RequestSnapshot(firstRequest.value ?? plan.original.value)
    }

    nonisolated func perform(_ body: @escaping @Sendable (isolated RequestCore) -> Void) {
        queue.async(on: self, body)
    }

    /// Like ``perform(_:)``, but does not wake a thread during a transfer: the work runs when the transfer's next
    /// events arrive. Use this function only for work that can wait until the end of the transfer.
    nonisolated func performDeferred(_ body: @escaping @Sendable (isolated RequestCore) -> Void) {
        queue.async(on: self, isDeferred: true, body)
    }

    nonisolated func add(_ handler: @escaping @Sendable (RequestOutcome) -> Void) {
        performDeferred { $0.handle(.added(Handler(body: handler))) }
    }

    /// Sets ``request``, and starts the request if `starts` is true.
    nonisolated func begin(_ request: Request, starts: Bool) {
        guard !mayRunUserCode else { return perform { $0.begin(request, starts) } }
        queue.begin(on: self) { $0.begin(request, starts) }
    }

    private func begin(_ request: Request, _ starts: Bool) {
        self.request = request
        if starts { resume() }
    }

    /// Whether the first turn must run on the request's own queue instead of the caller's thread:
    ///
    /// - if sending may call the program's code or block on a disk, because the caller may hold a lock meanwhile;
    /// - if the caller runs on the engine's thread, which must not block. For example, an object that the closure of a
    ///   custom trust evaluation has captured may be released there, and create a request.
    private nonisolated var mayRunUserCode: Bool {
        firstRequest.error != nil || plan.upload != nil && !isTakenUnsent || plan.makeSink != nil
            || context.mayRunUserCode
            || context.settings.cookies?.isBusy ?? false || context.engine.isCurrent
    }

    func handle(_ event: RequestStateMachine<Handler>.Event) {
        let actions = state.handle(event)
        publishState()
        for action in actions { perform(action) }
        if state.isSettled { releaseClosures() }
    }

    private func publishState() {
        let current = state.summary
        guard current != publishedState else { return }
        publishedState = current
        snapshot.change { $0.state = current }
    }

    /// Releases the program's closures, which may capture the request and form a retain cycle.
    func releaseClosures() {
        validators = []
        ownerOffer.releaseClosures()
        sink.releaseClosures()
        uploadProgress?.releaseClosures()
        downloadProgress.releaseClosures()
    }

    func resume() {
        guard state.isSuspended, !state.isFinished else { return }
        notifyMonitors { $0.requestDidResume($1) }
        handle(.resumed)
    }

    func suspend() {
        guard !state.isSuspended, !state.isFinished else { return }
        handle(.suspended)
        notifyMonitors { $0.requestDidSuspend($1) }
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

    /// Applies an addition that a chain of calls makes, for example `request(…).validate()`. The request may already
    /// have finished.
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
        case .pause: current.hop?.control.suspend(true)
        case .unpause: unpause()
        case .stop: stop()
        case .validate(let attempt): validate(attempt)
        case .askRetrier(let attempt, let error): askRetrier(attempt, about: error)
        case .wait(let attempt, let delay): wait(attempt, delay)
        case .offer(let attempt, let error): offer(attempt, after: error)
        case .withdraw(let interruption): withdraw(.init(interruption))
        case .finish(let ending): finish(ending)
        case .run(let handler):
            // After the first call of a handler nothing is sent again, so a temporary upload file can be removed.
            plan.upload?.release()
            run(handler)
        }
    }

    private func run(_ handler: Handler) {
        guard !RequestFault.dropsHandler.occurs else { return }
        handler.body(outcome)
        if RequestFault.doublesHandler.occurs { handler.body(outcome) }
    }

    // MARK: Preparing

    private func prepare(_ attempt: Int) {
        outcome.head = nil
        ownerOffer.beginAttempt()
        guard let original = original.value else {
            return handle(.prepared(attempt: attempt, failure: plan.original.error))
        }
        // The adapter must see the fields that the request's own owner has added since the request was created.
        let isFirstRequest = attempt == 1 && ownerOffer.addedFields.isEmpty
        let adapted =
            isFirstRequest ? firstRequest : Result { try context.hooks.adapt(original, plan.policy) }
        guard let interceptor = context.interceptor, !plan.policy.isAdapted, let request = adapted.value
        else { return prepared(attempt, adapted) }
        guard let session = context.manager else {
            return prepared(attempt, .failure(AFError.sessionDeinitialized))
        }
        work = Task {
            let adapted = await Self.result { try await interceptor.adapt(request, for: session) }
            perform { $0.prepared(attempt, adapted) }
        }
    }

    static func result<Value>(_ body: () async throws -> Value) async -> Result<Value, any Error> {
        do { return .success(try await body()) } catch { return .failure(error) }
    }

    private func prepared(_ attempt: Int, _ adapted: Result<URLRequest, any Error>) {
        guard attempt == state.attempt, !state.isFinished else { return }
        let request = adapted.value ?? outcome.request ?? plan.original.value
        outcome.request = request
        snapshot.change { values in
            (values.request, values.current) = (request, request)
            values.head = nil
            values.retryCount = attempt - 1
            values.ownerRefusal = nil
        }
        handle(.prepared(attempt: attempt, failure: adapted.error))
    }

    // MARK: End of an attempt

    func attemptEnded(_ failure: (any Error)?) {
        // The delegate may still be deciding.
        work?.cancel()
        current.endHop()
        queue.setAwaiting(false)
        outcome.clock.complete()
        // A download whose last byte arrived after its cancellation counts as interrupted, so that it can be resumed
        // like a partial one.
        let interrupted = state.isInterrupted ? URLError.requestCancelled : nil
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
        let failure = validationFailure() ?? Result { try sink.accept(outcome.head) }.error
        handle(.validated(attempt: attempt, failure: failure))
    }

    /// Returns the error of the first validator that rejects the response; `nil` if all accept it.
    func validationFailure() -> (any Error)? {
        outcome.body = sink.body
        for validator in validators {
            if let failure = validator(outcome) { return failure }
        }
        return nil
    }

    // MARK: End of the request

    private func finish(_ ending: RequestStateMachine<Handler>.Ending) {
        work?.cancel()
        work = nil
        outcome.clock.complete()
        outcome.error = error(of: ending)
        outcome.body = sink.finish(outcome.error)
        snapshot.change { $0.resumeData = outcome.body.resumeData }
        uploadProgress?.end()
        downloadProgress.end()
        notifyMonitors { $0.requestDidFinish($1, error: outcome.error) }
        if let request, !RequestFault.keepsRequest.occurs { context.remove(request.identifier) }
    }

    private func error(of ending: RequestStateMachine<Handler>.Ending) -> (any Error)? {
        switch ending {
        case .completed: nil
        case .failed(let error): error
        case .interrupted(.cancelled, let failure): URLError.cancelled(after: failure)
        case .interrupted(.sessionDropped, _): ownerOffer.abandonment ?? AFError.sessionDeinitialized
        case .interrupted(.refused, _): snapshot.now.ownerRefusal ?? URLError.requestCancelled
        }
    }
}

extension Error {
    /// Whether the program cancelled the transfer, by `cancel()` or by the answer of a delegate's closure.
    var isCancellation: Bool { (self as? URLError)?.code == .cancelled }
}

extension URLError {
    /// Returns the error of a cancelled request. If the cancellation ended a transfer, the transfer's own error is
    /// returned, because it says how far the transfer had come.
    fileprivate static func cancelled(after failure: (any Error)?) -> any Error {
        let cancelled: Int32 = 42
        guard let failure, failure.transferFailure?.code == cancelled else {
            return URLError.requestCancelled
        }
        return failure
    }
}
