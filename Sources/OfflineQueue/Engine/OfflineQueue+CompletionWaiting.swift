internal import Dispatch
internal import Glibc

// Calls that wait until a request has finished; see ``CompletionWaiters``.

extension OfflineQueue {
    /// Waits until a request has finished, and returns its details.
    ///
    /// The wait also ends at the time limit, when the caller's task is cancelled and when the queue stops. The returned
    /// request may then be unfinished.
    ///
    /// ```swift
    /// let receipt = try await queue.enqueue(request)
    /// let details = try await queue.result(of: receipt.id, within: .seconds(30))
    /// if details?.summary.state == .delivered { print(details?.response?.status ?? 0) }
    /// ```
    ///
    /// - Parameters:
    ///   - id: The request's id.
    ///   - limit: The maximum time to wait. Default `nil`: no limit.
    /// - Returns: The details of the request after the wait; `nil` if the queue does not know the id.
    /// - Throws: ``QueueError`` of the store.
    public func result(of id: String, within limit: Duration? = nil) async throws -> RequestDetails? {
        try await waitUntilFinished(id, within: limit)
        return try await request(id)
    }

    /// Waits in the same way as ``result(of:within:)``, without reading the request's details.
    package func waitUntilFinished(_ id: String, within limit: Duration?) async throws {
        let deadline = limit.map { ContinuousClock.now + $0 }
        // The waiter is registered before the state is read. Otherwise a change right after the read would be missed.
        let waiter = completionWaiters.add(id, deadline: deadline)
        defer { completionWaiters.remove(waiter, of: id) }
        setCompletionTimer(deadline)
        guard phase != .stopped, !hasFailed, try await isUnderWay(id) else { return }
        await suspend(waiter, of: id)
    }

    private func isUnderWay(_ id: String) async throws -> Bool {
        try await store.storedStates(of: [id])[id]?.state.isFinal == false
    }

    /// Suspends the task until the waiter is woken. Returns immediately if it already was.
    private func suspend(_ waiter: Int, of id: String) async {
        guard completionWaiters.mustWait(waiter, of: id) else { return }
        await withTaskCancellationHandler {
            await withCheckedContinuation { completionWaiters.suspend(waiter, of: id, $0) }
        } onCancel: {
            Task { await self.wake(waiter, of: id) }
        }
    }

    private func wake(_ waiter: Int, of id: String) { completionWaiters.wake(waiter, of: id) }

    // MARK: Finished requests

    /// Checks all requests that calls wait for, because any of them may have finished.
    func recheckCompletions() {
        recheckCompletions(of: completionWaiters.ids)
    }

    /// Checks the given requests, because they may have finished. Wakes the waiters of those that have.
    ///
    /// One query of the store serves all waiters. Requests that are passed during a query share the next query. With a
    /// query for each waiter, a thousand waiters would cause a thousand queries per change.
    func recheckCompletions(of ids: some Sequence<String>) {
        guard completionWaiters.mark(ids) else { return }
        Task { await self.checkCompletions() }
    }

    private func checkCompletions() async {
        while let ids = completionWaiters.takeCandidates() {
            // If the query fails, all waiters are woken. Each then queries the store itself and throws the error.
            let storedStates = (try? await store.storedStates(of: ids)) ?? [:]
            for id in ids where storedStates[id]?.state.isFinal ?? true { completionWaiters.wakeAll(of: id) }
        }
    }

    // MARK: Deadlines

    private func setCompletionTimer(_ deadline: ContinuousClock.Instant?) {
        completionWaiters.setTimer(deadline) { deadline in
            Task { [weak self] in
                try? await Task.sleep(until: deadline, clock: .continuous)
                if !Task.isCancelled { await self?.completionTimerFired() }
            }
        }
    }

    private func completionTimerFired() {
        setCompletionTimer(completionWaiters.timerFired(at: .now))
    }
}

/// Watches: the states of the gates that the scheduler wants to know.
extension OfflineQueue {
    /// A watch of an endpoint's gate.
    struct EndpointWatch {
        /// A number that no other watch has. States of earlier watches of the endpoint are ignored.
        let number: UInt64
        /// `nil` if the state never changes.
        let watch: (any GateWatch)?

        func end() { watch?.cancel() }
    }

    func watch(_ endpoint: Endpoint) {
        lastWatch += 1
        let watch = gate.watch(endpoint) { [gateChanges, number = lastWatch] state in
            gateChanges.post(GateChanges.Change(endpoint: endpoint, watch: number, state: state))
        }
        watches[endpoint] = EndpointWatch(number: lastWatch, watch: watch)
    }

    /// Passes the states of all gates to the scheduler, until the queue stops.
    func followGates() async {
        while phase == .running {
            let changes = await gateChanges.next()
            guard !changes.isEmpty else { return }
            for change in changes { gateChanged(change) }
        }
    }

    private func gateChanged(_ change: GateChanges.Change) {
        guard phase == .running, watches[change.endpoint]?.number == change.watch else { return }
        handle(.gate(change.endpoint, change.state))
    }
}

/// Probes by others that show which servers respond.
extension OfflineQueue {
    /// Ends the delays of requests to origins to which a probe has succeeded, if their last attempts got no response.
    ///
    /// Such delays are pointless when the server responds again. Other delays continue, such as those by `Retry-After`.
    package func probeSucceeded(_ origins: [Origin]) {
        guard phase == .running, scheduler.awaitsResponse(of: origins) else { return }
        handle(.probeSucceeded(origins))
    }
}

extension OfflineQueue {
    /// Returns whether a directory has no database file although it contains the spool or the log of a queue. Such a
    /// directory cannot be opened, because a new database would hide the loss of the requests. Blocks.
    ///
    /// - Parameter path: The queue's directory.
    package static func hasLostDatabase(directory path: String) -> Bool {
        QueueDirectory.hasLostDatabase(path)
    }

    /// Checks the log, the structure and the counters of a store that no process has open, like
    /// ``setAside(directory:evenIfSound:encryptionKeyFile:)``. Changes no data and no permissions.
    ///
    /// - Parameters:
    ///   - path: The queue's directory, which must exist.
    ///   - limits: The limits of the queue, which determine whether the disk is full.
    ///   - encryptionKeyFile: The path of the keys of an encrypted queue, which are checked, too. `nil` for none.
    /// - Throws: ``QueueError``: `alreadyOwned`, `directoryUnusable`, `storeUnavailable`, `storeUnusable` for a
    ///   database of another program or of a newer netwatch, `encryptionKeyUnusable`.
    package static func examineStore(
        directory path: String,
        limits: QueueLimits,
        encryptionKeyFile: String?
    ) async throws -> StoreExamination {
        _ = try await keys(in: encryptionKeyFile)
        let directory = try await DispatchQueue.global().run { () throws(QueueError) in
            try QueueDirectory(existing: path)
        }
        defer { directory.release() }
        let (isNew, noted) = await DispatchQueue.global().run {
            (access(directory.databasePath, F_OK) != 0, directory.damage.text)
        }
        var damage = noted
        if damage == nil, !isNew { damage = try await SetAside(directory).diagnosis() }
        return await DispatchQueue.global().run { [damage] in
            let space = FileSystem.space(at: directory.path)
            return StoreExamination(of: directory, damage: damage, limits: limits, space: space)
        }
    }
}
