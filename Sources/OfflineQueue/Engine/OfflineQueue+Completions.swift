internal import NetwatchEventLoop

/// Handlers that receive the requests with a tag when they have ended, even after a restart of the process.
extension OfflineQueue {
    /// A handler of ended requests. It receives the same details as ``OfflineQueue/result(of:within:)`` returns.
    public typealias CompletionHandler = @Sendable (RequestDetails) async throws -> Void

    /// Registers the handler that receives each request with a tag when it has ended.
    ///
    /// A request has ended when it is delivered, dead, cancelled or superseded; see ``EnqueueOptions/tag``. The
    /// transaction that ends the request also records that a handler must be called. The record stays until the handler
    /// has returned without an error. After a restart, the handler that is registered for the same tag therefore
    /// receives the requests that no handler has handled:
    ///
    /// - The handler is called at least once for each request. After it has returned without an error, this queue does
    ///   not call it again for the same end. A later queue on the same directory calls it again if the process ended,
    ///   the queue was stopped, or the power failed before the return was recorded. A dead request that is retried ends
    ///   again, and the handler receives it again.
    /// - The handler is called for one request at a time, in the order in which the requests have ended. If it throws,
    ///   it receives the same request again after a delay, which doubles from ``Configuration/backoffBase`` up to
    ///   ``Configuration/backoffCap``. A handler that throws or does not return delays only the requests of its tag.
    /// - A request is kept for its handler as long as it is in the history: dead requests for 7 days; others for 1 day,
    ///   at most 10,000 of each state; all of them together up to 256 MiB. When it is removed from the history, its
    ///   handler is not called for it any more. ``statistics()`` reports how many requests wait for their handlers. An
    ///   export does not record which requests wait for a handler. Of the finished requests, it contains only the dead
    ///   ones. Let the handlers finish before you move a queue by export and import; ``statistics()`` reports when none
    ///   waits.
    /// - If a finished request is encrypted and its key is missing, the handlers of its tag wait until the queue is
    ///   opened with the key.
    ///
    /// Register the handlers before ``start()``. They are called while the queue is running, on the cooperative thread
    /// pool, and must not block. A later registration replaces the handler of the tag; a call in progress continues.
    /// ``stop()`` cancels the task of a call in progress, and does not wait for it.
    ///
    /// ```swift
    /// try await queue.onCompletion(tag: "readings") { request in
    ///     try await database.markSent(request.summary.id, response: request.response?.body)
    /// }
    /// try await queue.start()
    /// ```
    ///
    /// - Parameters:
    ///   - tag: The tag: 1 to 255 bytes of printable ASCII.
    ///   - handler: The handler.
    /// - Throws: ``QueueError`` with `invalidOption` if the tag is not accepted.
    @preconcurrency
    public func onCompletion(
        tag: String,
        perform handler: @escaping CompletionHandler
    ) throws(QueueError) {
        try RequestChecks.checkPrintable(tag, "tag")
        tagHandlers[tag, default: TagHandler()].handler = handler
        tagHandlers[tag]?.failures = 0
        tagHandlers[tag]?.registrations.changed()
        if phase == .running { startDelivery(of: tag) }
    }

    /// Removes the handler of a tag. Requests with the tag wait for a new handler. A call in progress continues.
    public func removeCompletionHandler(tag: String) {
        guard let registered = tagHandlers[tag] else { return }
        guard registered.isStarted else { return tagHandlers[tag] = nil }
        // The task of the tag ends itself, because a call may be in progress.
        tagHandlers[tag]?.handler = nil
        registered.registrations.changed()
        store.completions.post([tag])
    }

    /// The handler of a tag, and the task that calls it.
    struct TagHandler {
        /// `nil` after the handler was removed, until the task has ended.
        var handler: CompletionHandler?
        /// The task that calls the handler; `nil` before the start of the queue.
        var task: Task<Void, Never>?
        /// The position of the last completion that a handler has handled.
        var position: Int64 = 0
        /// The number of calls in a row that threw.
        var failures = 0
        /// The error of the last call; `nil` after a successful one.
        var lastError: String?
        /// Notifies the task of a new handler.
        let registrations = ChangeWaiters()

        var isStarted: Bool { task != nil }

        mutating func succeeded() { (failures, lastError) = (0, nil) }

        mutating func failed(_ error: any Error) { (failures, lastError) = (failures + 1, "\(error)") }
    }

    func withHandler(_ completions: QueueStatistics.WaitingCompletions)
        -> QueueStatistics.WaitingCompletions
    {
        var completions = completions
        completions.hasHandler = tagHandlers[completions.tag]?.handler != nil
        completions.lastError = tagHandlers[completions.tag]?.lastError
        return completions
    }
}

// MARK: - Delivery

extension OfflineQueue {
    /// Starts the task that calls the handler of a tag, unless it exists.
    func startDelivery(of tag: String) {
        guard tagHandlers[tag]?.isStarted == false else { return }
        tagHandlers[tag]?.task = Task { await self.deliverCompletions(of: tag) }
    }

    /// Delivers the completions of a tag until its handler is removed, the queue stops or its store fails. The others
    /// wait for the next handler or the next start.
    private func deliverCompletions(of tag: String) async {
        while phase == .running, !hasFailed {
            guard tagHandlers[tag]?.handler != nil else { return forget(tag) }
            do {
                try await deliverNextCompletion(of: tag)
            } catch is CancellationError {
                return
            } catch {
                failed(error)
                // The store may be readable again later.
                try? await Task.sleep(for: configuration.backoffBase)
            }
        }
    }

    private func forget(_ tag: String) {
        tagHandlers[tag] = nil
        store.completions.removeWaiters(of: tag)
    }

    /// Waits for a completion and calls the handler once.
    ///
    /// After a failure, the completion is read again: it may have been removed with its request, or the request may
    /// have been retried.
    private func deliverNextCompletion(of tag: String) async throws {
        let changes = store.completions.waiters(of: tag)
        let generation = changes.generation
        let position = tagHandlers[tag]?.position ?? 0
        guard let next = try await store.completion(of: tag, after: position) else {
            return try await changes.wait(after: generation)
        }
        guard try await handle(next.request, of: tag) else { return }
        // Even if the removal fails, this handler does not get the completion again.
        tagHandlers[tag]?.position = next.position
        try await store.removeCompletion(at: next.position)
    }

    /// Calls the handler. If it throws, waits for the delay or for another handler.
    ///
    /// - Returns: Whether the handler has returned without an error.
    /// - Throws: `CancellationError` if the queue stops.
    private func handle(_ request: RequestDetails, of tag: String) async throws -> Bool {
        guard let registered = tagHandlers[tag], let handler = registered.handler else { return false }
        let generation = registered.registrations.generation
        do {
            try await handler(request)
            tagHandlers[tag]?.succeeded()
            return true
        } catch {
            try Task.checkCancellation()
            tagHandlers[tag]?.failed(error)
        }
        let limit = configuration.backoffBase.doubled(
            times: registered.failures,
            upTo: configuration.backoffCap
        )
        try await wait(for: registered.registrations, after: generation, atMost: limit)
        return false
    }

    /// Waits until another handler is registered, or the time is over.
    private func wait(for changes: ChangeWaiters, after generation: Int, atMost limit: Duration) async throws
    {
        do {
            try await TimedCall.run(within: limit) { try await changes.wait(after: generation) }
        } catch is TimedCall.Timeout {}
    }
}
