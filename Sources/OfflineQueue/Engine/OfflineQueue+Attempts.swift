internal import Foundation

/// Performs the scheduler's actions.
extension OfflineQueue {
    struct Inflight {
        let id: String
        let token: String
        let host: String?
        /// The task of the transfer. Cancelling it ends the transfer, and the outcome is still processed.
        let transfer: Task<AttemptOutcome, Never>
        let mayBeSentTwice: Bool
        let began: Moment
        /// Whether the attempt was ended because the path to its host was lost.
        var isPathLost = false
    }

    var now: Moment { origin.duration(to: .now) }

    func handle(_ event: Scheduler.Event) {
        for action in scheduler.handle(event, now: now) { perform(action) }
        setTimer()
        resolveDelayed()
    }

    /// Passes lanes and their next due times to the scheduler.
    func announce(_ lanes: [LaneRecord]) {
        for lane in lanes where lane.isPaused { resolvePaused(lane.id) }
        guard phase == .running else { return }
        let rows = lanes.compactMap { lane in
            lane.due.map { Scheduler.LaneRows(Scheduler.LaneInfo(lane, now: now), due: now + $0) }
        }
        if !rows.isEmpty { handle(.lanes(rows)) }
        let emptied = lanes.filter(\.wasEmpty).map(\.id)
        if !emptied.isEmpty { handle(.emptied(lanes: emptied)) }
    }

    private func perform(_ action: Scheduler.Action) {
        switch action {
        case .claim(let claim):
            claimsInProgress += 1
            Task { await self.execute(claim) }
        case .dropConnections:
            pathChange = Task { [sender, pathChange] in
                await pathChange?.value
                await sender.dropConnections()
            }
        case .abort(let host):
            for attempt in inflight.values where attempt.host == host && attempt.mayBeSentTwice {
                attempt.transfer.cancel()
            }
        case .restartStalled(let host): sender.restartStalled(to: host)
        case .endLost(let host, let begunBefore): endAttempts(to: host, begunBefore: begunBefore)
        case .watch(let host):
            watches[host] = Task { [gate] in
                for await state in gate.watch(host: host) where !Task.isCancelled {
                    self.handle(.gate(host: host, state))
                }
            }
        case .unwatch(let host):
            watches.removeValue(forKey: host)?.cancel()
        }
    }

    /// Ends attempts after the path to the host was lost. A response that arrives before the transfer has ended still
    /// counts.
    private func endAttempts(to host: String, begunBefore moment: Moment) {
        for (sequence, attempt) in inflight where attempt.host == host && attempt.began < moment {
            inflight[sequence]!.isPathLost = true
            attempt.transfer.cancel()
        }
    }

    private func setTimer() {
        let next = scheduler.nextWake(now: now)
        guard next != timer?.moment else { return }
        timer?.task.cancel()
        timer = next.map { moment in
            let deadline = origin.advanced(by: moment)
            let task = Task {
                guard (try? await Task.sleep(until: deadline, clock: .continuous)) != nil else { return }
                self.timerFired(moment)
            }
            return (moment, task)
        }
    }

    private func timerFired(_ moment: Moment) {
        guard timer?.moment == moment else { return }
        timer = nil
        handle(.wake)
    }
}

// MARK: - Attempts

extension OfflineQueue {
    private func execute(_ claim: Scheduler.Claim) async {
        defer { finishedOne { $0.claimsInProgress -= 1 } }
        let wanted = LaneClaim(lane: claim.lane, limit: claim.limit, releasing: claim.releasing)
        do {
            let batch = try await store.claim([wanted])[0]
            CrashPoint.claimed.reached()
            for request in batch.requests { try await launch(request, claim) }
            handle(.claimed(lane: claim.lane, taken: batch.requests.count, due: due(after: batch)))
        } catch {
            failed(error)
            // Whatever the error was, the lane must not wait for this claim for ever.
            handle(.claimed(lane: claim.lane, taken: 0, due: now + configuration.backoffCap))
        }
    }

    /// Returns when the lane's next request is due.
    private func due(after batch: ClaimedBatch) -> Moment? {
        // A lane claimed by another machine is checked again after the longest backoff, because that machine may end.
        let due = batch.isElsewhere ? configuration.backoffCap : batch.due
        return due.map { now + $0 }
    }

    private func launch(_ request: ClaimedRequest, _ claim: Scheduler.Claim) async throws {
        guard phase == .running else { return try await returnToStore(request) }
        let transfer = Task { [sender, pathChange, spool = store.spool] in
            await pathChange?.value
            switch await Attempt.Body.opening(request.body, in: spool) {
            case .success(let body):
                CrashPoint.sending.reached()
                return await sender.send(Attempt(request, body: body))
            case .failure(let unopened): return unopened.outcome
            }
        }
        let origin = try? Origin(url: request.url)
        inflight[request.sequence] = Inflight(
            id: request.id,
            token: request.lease.token,
            host: origin?.host,
            transfer: transfer,
            mayBeSentTwice: request.mayBeSentTwice,
            began: now
        )
        let gateState = origin.flatMap { scheduler.gateState(of: $0.host) }
        Task { await self.conclude(request, claim, origin, gateState, transfer) }
    }

    /// Returns a claimed request to the store, because the queue stopped during the claim.
    private func returnToStore(_ request: ClaimedRequest) async throws {
        let conclusion = Conclusion(
            sequence: request.sequence,
            token: request.lease.token,
            verdict: .retry(countsAsAttempt: false)
        )
        _ = try await store.conclude([conclusion])
    }

    private func conclude(
        _ request: ClaimedRequest,
        _ claim: Scheduler.Claim,
        _ origin: Origin?,
        _ gateState: GateState?,
        _ transfer: Task<AttemptOutcome, Never>
    ) async {
        guard let origin else {
            // The URL was checked when it was enqueued, so this happens only if the database was edited by hand.
            transfer.cancel()
            return await settle(request, claim, .unreadable, nil)
        }
        let start = ContinuousClock.now
        var outcome = await transfer.value
        CrashPoint.answered.reached()
        if inflight[request.sequence]?.isPathLost == true { outcome = outcome.endedByLoss(of: origin.host) }
        var context = AttemptContext(request, origin: origin, gateIsDown: gateState == .notReachable)
        if case .failure(let failure) = outcome {
            await addPathState(of: failure, from: gateState, claim, to: &context)
        }
        context.validatesServer = sender.validatesServer(of: request.url)
        context.conflictAge = request.conflictAge.map { $0 + start.duration(to: .now) }
        let judgement = FailureTable.judge(outcome, of: context, now: .now)
        await settle(request, claim, judgement, (outcome, start.duration(to: .now)))
    }

    /// Finds out whether there was a path during the whole attempt. That decides whether a failure counts, rather than
    /// the error number.
    ///
    /// - Parameter before: The gate's state when the attempt began.
    private func addPathState(
        of failure: AttemptFailure,
        from before: GateState?,
        _ claim: Scheduler.Claim,
        to context: inout AttemptContext
    ) async {
        let host = context.origin.host
        let current = await gate.state(of: host) ?? scheduler.gateState(of: host)
        if current == .notReachable || scheduler.isGateDown(host) { context.gateIsDown = true }
        if let old = before?.generation, let new = current?.generation { context.pathHasChanged = old != new }
        guard FailureTable.classify(failure) == .path else { return }
        if current == .unknown, FailureTable.seemsOffline(failure) { context.gateIsDown = true }
        let isPathError = FailureTable.isPathError(failure)
        context.isReconnecting = scheduler.isReconnecting(
            lane: claim.lane,
            isPathError: isPathError,
            now: now
        )
    }

    private func settle(
        _ request: ClaimedRequest,
        _ claim: Scheduler.Claim,
        _ judgement: Judgement,
        _ attempt: (outcome: AttemptOutcome, duration: Duration)?
    ) async {
        let settlement = scheduler.conclude(
            lane: claim.lane,
            epoch: claim.epoch,
            effect: judgement.lane,
            failures: request.attempts + request.deferrals,
            lasting: attempt?.duration ?? .zero,
            now: now
        )
        let next = scheduler.claimNext(lane: claim.lane, after: judgement.lane, now: now)
        let due = max(settlement.due, judgement.overrun.map { now + $0 } ?? .zero)
        let response = attempt?.outcome.response
        let conclusion = Conclusion(
            sequence: request.sequence,
            token: request.lease.token,
            verdict: judgement.verdict,
            delay: max(.zero, due - now),
            status: judgement.status,
            detail: judgement.detail,
            laneClosure: settlement.laneNotBefore.map { max(.zero, $0 - now) },
            attempt: attempt.map { $0.outcome.record(lasting: $0.duration) },
            response: response,
            overrun: judgement.overrun
        )
        defer { finishedOne { $0.inflight[request.sequence] = nil } }
        let nextBatch: ClaimedBatch?
        do {
            let claims = next.map { [LaneClaim(lane: $0.lane, limit: $0.limit)] } ?? []
            nextBatch = try await store.conclude([conclusion], claiming: claims).claimed.first
        } catch {
            resolve(request.id, .queued(id: request.id, reason: .stopped))
            return failed(error)
        }
        capacityWaiters.changed()
        // The request may have finished even so: its attempts are used up, or it was cancelled meanwhile.
        if case .retry = judgement.verdict, sendWaiters[request.id] != nil { await resolveFinished() }
        // If the attempt is repeated immediately, the caller waits for the next one.
        if !judgement.isRepeatedImmediately {
            resolve(request.id, SendResult(id: request.id, judgement, body: response?.body ?? Data()))
        }
        if let next, let nextBatch {
            await launchNext(next, nextBatch)
        } else {
            // Removed first, so that `handle` resumes the caller if the request cannot be tried again now.
            inflight[request.sequence] = nil
            handle(judgement.settled(lane: claim.lane, due: due))
        }
        recheckCompletions(of: [request.id])
    }

    /// Sends the request that was claimed together with a conclusion.
    private func launchNext(_ claim: Scheduler.Claim, _ batch: ClaimedBatch) async {
        CrashPoint.claimed.reached()
        do {
            for request in batch.requests { try await launch(request, claim) }
        } catch {
            failed(error)
        }
        handle(.nextClaimed(lane: claim.lane, taken: batch.requests.count, due: due(after: batch)))
    }
}

extension Scheduler.LaneInfo {
    fileprivate init(_ lane: LaneRecord, now: Moment) {
        self.init(
            id: lane.id,
            origin: lane.key.origin,
            label: lane.key.label,
            mode: lane.key.mode,
            notBefore: lane.notBefore.map { now + $0 }
        )
    }
}
