internal import Foundation
internal import NetwatchEventLoop

/// Attempts: the actions that the scheduler orders, and the outcomes that it receives.
extension OfflineQueue {
    /// A request in flight.
    struct Inflight {
        let id: String
        let token: String
        let lane: Int64
        let endpoint: Endpoint?
        /// The task of the transfer. Cancelling it ends the transfer; its outcome is still processed.
        let transfer: Task<EndedAttempt, Never>
        let mayBeSentTwice: Bool
        let began: Moment
        /// The number of changes of the request's credential before the attempt.
        let credentialChanges: Int
        /// Whether the attempt is bound to an interface and a source address.
        var isBound = false
        /// The reason why the queue ended the attempt; `nil` if it did not.
        private(set) var endReason: String?

        /// Cancels the transfer. A response that arrives before the transfer has ended still counts.
        ///
        /// - Parameter reason: The error of the attempt.
        mutating func end(because reason: String) {
            endReason = endReason ?? reason
            transfer.cancel()
        }
    }

    var now: Moment { origin.duration(to: .now) }

    func handle(_ event: Scheduler.Event) {
        let now = now
        scheduler.setWall(.now, now: now)
        for action in scheduler.handle(event, now: now) { perform(action) }
        setTimer([scheduler.nextWake(now: now), resolveDelayed()].compactMap(\.self).min())
    }

    private func perform(_ action: Scheduler.Action) {
        switch action {
        case .claim(let claim):
            claimsInProgress += 1
            Task { await self.execute(claim) }
        case .dropConnections:
            pathChange = Task { [sender, portals, pathChange] in
                await pathChange?.value
                await portals?.pathsChanged()
                await sender.dropConnections()
            }
        case .abort(let endpoint):
            for attempt in inflight.values where attempt.endpoint == endpoint && attempt.mayBeSentTwice {
                attempt.transfer.cancel()
            }
        case .interrupt(let lane):
            for attempt in inflight.values where attempt.lane == lane && attempt.mayBeSentTwice {
                attempt.transfer.cancel()
            }
        case .release(let release): Task { await self.release(release) }
        case .restartStalled(let endpoint): sender.restartStalled(to: endpoint)
        case .endLost(let endpoint, let begunBefore): endAttempts(to: endpoint, begunBefore: begunBefore)
        case .load(let lanes): load(lanes)
        case .watch(let endpoint): watch(endpoint)
        case .unwatch(let endpoint):
            watches.removeValue(forKey: endpoint)?.end()
            portalProbes.removeValue(forKey: endpoint)?.cancel()
        case .probePortal(let endpoint, let probe): probePortal(endpoint, probe)
        }
    }

    private func probePortal(_ endpoint: Endpoint, _ probe: Int) {
        guard let portals else { return }
        portalProbes[endpoint]?.cancel()
        portalProbes[endpoint] = Task { [pathChange] in
            // A failure of an earlier path must not count for the current one.
            await pathChange?.value
            if await portals.hasFailed(pathTo: endpoint) {
                self.handle(.portalProbeHasFailed(endpoint, probe: probe))
            }
            let finding = await portals.probe(pathTo: endpoint)
            // The scheduler ignores the result of an obsolete probe.
            self.handle(.portalProbed(endpoint, probe: probe, finding))
        }
    }

    /// Ends the attempts that began before `moment`, because their path to the endpoint was lost.
    private func endAttempts(to endpoint: Endpoint, begunBefore moment: Moment) {
        for (sequence, attempt) in inflight where attempt.endpoint == endpoint && attempt.began < moment {
            inflight[sequence]!.end(because: "the path to \(endpoint.host) was lost")
        }
    }

    private func setTimer(_ next: Moment?) {
        guard next != timer?.moment else { return }
        timer?.task.cancel()
        timer = next.map { moment in
            let deadline = origin.advanced(by: moment)
            let task = Task {
                guard (try? await Task.sleep(until: deadline, clock: .continuous)) != nil else { return }
                // If the process did not run, the lost path may have returned meanwhile.
                if self.hasDueGrace, let grace = TimeLimits.grace(after: deadline.duration(to: .now)) {
                    guard (try? await Task.sleep(for: grace, clock: .continuous)) != nil else { return }
                }
                self.timerFired(moment)
            }
            return (moment, task)
        }
    }

    /// Whether the grace period of a lost path is over, so that the next event ends attempts.
    private var hasDueGrace: Bool {
        scheduler.graces.first.map { $0 <= now } ?? false
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
        let wanted = LaneClaim(claim)
        do {
            let batch = try await store.claim([wanted])[0]
            CrashPoint.claimed.reached()
            for request in batch.requests { try await launch(request, claim) }
            let use = RetryUse(of: claim, in: batch)
            handle(
                .claimed(
                    lane: claim.lane,
                    taken: batch.requests.count,
                    use: use,
                    due: batch.due.map { now + $0 }
                )
            )
        } catch {
            failed(error)
            // Without this event, the lane would wait for the failed claim for ever.
            let use = RetryUse(of: claim.retries, taken: 0, retries: 0)
            let due = now + configuration.backoffCap
            handle(.claimed(lane: claim.lane, taken: 0, use: use, due: due))
        }
    }

    private func launch(_ request: ClaimedRequest, _ claim: Scheduler.Claim) async throws {
        guard phase == .running else { return try await returnToStore(request) }
        // The task must not run on the queue's actor, which all attempts share.
        let transfer = Task { @concurrent [sender, pathChange, spool = store.spool] in
            await pathChange?.value
            switch await Attempt.Body.opening(request.body, in: spool) {
            case .success(let body):
                guard let attempt = await self.attempt(for: request, body, claim) else {
                    return EndedAttempt(.unsent)
                }
                CrashPoint.sending.reached()
                let outcome = await sender.send(attempt)
                return EndedAttempt(outcome, attempt.secrets.redactor)
            case .failure(let unopened): return EndedAttempt(unopened.outcome)
            }
        }
        let origin = try? Origin(url: request.url)
        inflight[request.sequence] = Inflight(
            id: request.id,
            token: request.lease.token,
            lane: claim.lane,
            endpoint: origin?.endpoint,
            transfer: transfer,
            mayBeSentTwice: request.mayBeSentTwice,
            began: now,
            credentialChanges: request.options.credential.map { credentialChanges[$0, default: 0] } ?? 0
        )
        let gateState = origin.flatMap { scheduler.gateState(of: $0.endpoint) }
        Task { await self.conclude(request, claim, origin, gateState, transfer) }
    }

    /// Returns a claimed request to the store, because the queue stopped during the claim.
    private func returnToStore(_ request: ClaimedRequest) async throws {
        let conclusion = Conclusion(
            sequence: request.sequence,
            token: request.lease.token,
            verdict: .retry(countsAsAttempt: false),
            detail: "the queue stopped before the request was sent",
            // 42 is CURLE_ABORTED_BY_CALLBACK.
            attempt: AttemptRecord(duration: .zero, curlCode: 42)
        )
        _ = try await store.conclude([conclusion])
    }

    /// Returns the attempt to send for a claimed request; `nil` if it must not be sent, because the attempt was
    /// cancelled, the queue stops, a constraint is no longer met, or the path must first be probed for captive portals.
    ///
    /// The credential's provider and the session's adapter are called afterwards, so that neither is called before the
    /// first probe of the path for captive portals has ended. Later probes may run during these calls.
    private func attempt(for request: ClaimedRequest, _ body: Attempt.Body, _ claim: Scheduler.Claim)
        -> Attempt?
    {
        guard phase == .running, !Task.isCancelled, mayStillSend(claim) else { return nil }
        let binding = scheduler.binding(lane: claim.lane)
        inflight[request.sequence]?.isBound = binding != nil
        return Attempt(
            request,
            body: body,
            responseLimit: awaitedResponses[request.id]?.limit,
            httpVersion: configuration.httpVersion(of: request.url),
            binding: binding,
            // A sender may keep the attempt, and the queue keeps its sender.
            mayStillBeSent: { [weak self] in await self?.mayStillSend(claim) ?? false }
        )
    }

    private func mayStillSend(_ claim: Scheduler.Claim) -> Bool {
        scheduler.mayStillSend(lane: claim.lane, now: now)
    }

    private func conclude(
        _ request: ClaimedRequest,
        _ claim: Scheduler.Claim,
        _ origin: Origin?,
        _ gateState: GateState?,
        _ transfer: Task<EndedAttempt, Never>
    ) async {
        guard let origin else {
            // The URL was checked when the request was enqueued, so this happens only if the database was edited by
            // hand.
            transfer.cancel()
            return await settle(request, claim, .unreadable, nil)
        }
        let start = ContinuousClock.now
        var ended = await transfer.value
        CrashPoint.responded.reached()
        if let reason = inflight[request.sequence]?.endReason {
            ended.outcome = ended.outcome.ended(because: reason)
        }
        var context = AttemptContext(request, origin: origin, gateIsDown: gateState?.isDown == true)
        context.isBound = inflight[request.sequence]?.isBound == true
        if case .failure(let failure) = ended.outcome {
            await addPathState(of: failure, from: gateState, claim, to: &context)
        }
        context.validatesServer = sender.validatesServer(of: request.url)
        context.conflictAge = request.conflictAge.map { $0 + start.duration(to: .now) }
        context.statusRules = configuration.rules(
            besides: request.options.statusRules,
            for: origin,
            lane: scheduler.key(ofLane: claim.lane)?.label
        )
        let response = Scheduler.Response(
            lane: claim.lane,
            epoch: claim.epoch,
            began: inflight[request.sequence]?.began ?? now,
            previousStatus: request.attempts > 1 ? request.lastStatus : nil,
            mayBeRepeated: request.mayBeSentTwice && !request.isLastAttempt
        )
        let classification = scheduler.confirmed(
            FailureTable.classify(ended.outcome, of: context, now: .now, redactor: ended.redactor),
            of: response,
            now: now
        )
        await settle(request, claim, classification, (ended, start.duration(to: .now)))
    }

    /// Adds to the context of a failed attempt whether there was a path during the whole attempt.
    ///
    /// The path, not the error number, decides whether the failure counts: other causes than a missing path lead to the
    /// same error numbers.
    ///
    /// - Parameter before: The state of the endpoint's gate when the attempt began.
    private func addPathState(
        of failure: AttemptFailure,
        from before: GateState?,
        _ claim: Scheduler.Claim,
        to context: inout AttemptContext
    ) async {
        let endpoint = context.origin.endpoint
        let current = await gate.state(of: endpoint) ?? scheduler.gateState(of: endpoint)
        if current?.isDown == true || scheduler.isGateDown(endpoint) { context.gateIsDown = true }
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
        _ classification: AttemptClassification,
        _ attempt: (ended: EndedAttempt, duration: Duration)?
    ) async {
        if classification.suspectsPortal { scheduler.suspectPortal(lane: claim.lane, now: now) }
        let isRetry = request.attempts > 1
        let settlement = scheduler.conclude(
            lane: claim.lane,
            epoch: claim.epoch,
            effect: classification.lane,
            failures: request.attempts + request.deferrals,
            course: attempt.map { $0.ended.outcome.course(lasting: $0.duration, isRetry: isRetry) }
                ?? AttemptCourse(),
            now: now
        )
        let next = scheduler.claimNext(lane: claim.lane, after: classification.lane, now: now)
        let due = max(settlement.due, now + max(classification.overrun ?? .zero, classification.postponement))
        let closure = settlement.laneNotBefore.map { max(.zero, $0 - now) }
        let conclusion = Conclusion(
            of: request,
            classification,
            attempt,
            delay: max(.zero, due - now),
            closure
        )
        defer { finishedOne { $0.inflight[request.sequence] = nil } }
        // Kept before the commit, because a waiting caller may see the row's end before this function continues.
        keepResponse(to: request.id, classification.verdict, attempt?.ended.outcome)
        let nextBatch: ClaimedBatch?
        do {
            let claims = next.map { [LaneClaim($0)] } ?? []
            nextBatch = try await store.conclude([conclusion], claiming: claims).claimed.first
            report(classification.verdict, of: request)
            if classification.verdict == .held(.auth) { try await releaseIfChanged(request) }
        } catch {
            resolve(request.id, .queued(id: request.id, reason: .stopped))
            dropResponse(to: request.id)
            return failed(error)
        }
        capacityWaiters.changed()
        // In spite of the verdict, the request may have finished: it has no attempts left, or it was cancelled during
        // the attempt.
        if case .retry = classification.verdict { await resolveFinished([request.id]) }
        // If the attempt is repeated immediately, or soon to confirm a refusal, the caller of `send` waits for the repetition.
        if !classification.isRepeatedImmediately, !awaitsConfirmation(request.id, classification, due: due) {
            let body = conclusion.response?.body ?? Data()
            resolve(request.id, SendResult(id: request.id, classification, body: body))
        }
        if let next, let nextBatch {
            await launchNext(next, nextBatch)
        } else {
            // The request is removed from `inflight` first. Otherwise `handle` would not resume the caller of `send` if
            // the request cannot be tried again now.
            inflight[request.sequence] = nil
            handle(classification.settled(lane: claim.lane, due: due))
        }
        recheckCompletions(of: [request.id])
    }

    /// Sends the request that the store claimed in the transaction that wrote the previous outcome of its lane.
    private func launchNext(_ claim: Scheduler.Claim, _ batch: ClaimedBatch) async {
        CrashPoint.claimed.reached()
        do {
            for request in batch.requests { try await launch(request, claim) }
        } catch {
            failed(error)
        }
        let use = RetryUse(of: claim, in: batch)
        handle(
            .nextClaimed(
                lane: claim.lane,
                taken: batch.requests.count,
                use: use,
                due: batch.due.map { now + $0 }
            )
        )
    }
}

extension LaneClaim {
    fileprivate init(_ claim: Scheduler.Claim) {
        self.init(
            lane: claim.lane,
            limit: claim.limit,
            releasing: claim.releasing,
            retries: claim.retries
        )
    }
}

extension RetryUse {
    fileprivate init(of claim: Scheduler.Claim, in batch: ClaimedBatch) {
        let retries = batch.requests.count { $0.attempts > 1 }
        self.init(
            of: claim.retries,
            taken: batch.requests.count,
            retries: retries,
            postponement: batch.postponement
        )
    }
}
