internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTransport

// One attempt: its first transfer, and those that follow a redirect, a challenge or a refused range.

extension RequestCore {
    func send() {
        guard let request = outcome.request else { return }
        guard !isTakenUnsent else { return handle(.ended(attempt: state.attempt, failure: UnsentRequest())) }
        outcome.clock.start()
        outcome.clock.restart()
        outcome.head = nil
        outcome.metrics = nil
        uploadProgress?.restart()
        downloadProgress.restart()
        let upload = plan.upload ?? UploadBody(streamOf: request, after: current.upload)
        current = RequestAttempt(after: current, upload: upload)
        sendHop(request, upload, ownCredentials, isCrossOrigin: false)
    }

    /// Ends the attempt: cancels the current transfer. If the transfer has ended, because the next hop is held or the
    /// delegate is still deciding, the attempt ends immediately.
    func stop() {
        guard let hop = current.hop else { return }
        if hop.hasEnded {
            attemptEnded(URLError.requestCancelled)
        } else {
            hop.control.cancel()
        }
    }

    func unpause() {
        guard let hop = current.hop else { return }
        if hop.isHeld { hopFollows(hop) } else { hop.control.suspend(false) }
    }

    private var ownCredentials: TransferCredentials? {
        guard plan.policy.followsRedirects else { return nil }
        return snapshot.credential.flatMap { TransferCredentials($0) } ?? current.challengeCredentials
    }

    /// Starts the transfer of one hop. An error ends the attempt in a separate turn of the queue: the first hop may be
    /// sent on the caller's thread, where the program's code must not be called.
    private func sendHop(
        _ request: URLRequest,
        _ upload: UploadBody?,
        _ credentials: TransferCredentials?,
        sentText: String? = nil,
        isCrossOrigin: Bool
    ) {
        do {
            let fields = try sink.prepare(for: request)
            let id = current.nextHopID()
            let upload = renewed(upload)
            var transfer = try transfer(
                of: request,
                replacing: fields,
                upload,
                credentials,
                isCrossOrigin: isCrossOrigin
            )
            if let sentText { transfer.url = sentText }
            guard let url = request.url else { throw URLError.missingURL }
            let trust = try context.trust.decision(for: url)
            if let trust { transfer.trust = trust.trust }
            if let version = options.minimumTLSVersion { transfer.trust.minimumVersion = version.transfer }
            if let identity = plan.policy.identity { transfer.trust.identity = identity.transfer }
            let sent = request.reported(with: fields)
            let hop = Hop(
                id: id,
                request: request,
                sent: sent,
                url: url,
                sentText: sentText,
                control: TransferControl(context.engine),
                upload: upload,
                isAuthenticated: transfer.credentials != nil,
                isCrossOrigin: isCrossOrigin,
                trustPolicy: trust?.policy
            )
            current.begin(hop)
            snapshot.change { $0.current = sent }
            notifyMonitors { $0.request($1, willSend: sent) }
            start(transfer, as: hop)
        } catch {
            perform { $0.attemptEnded(error) }
        }
    }

    private func start(_ transfer: TransferRequest, as hop: Hop) {
        let (id, control) = (hop.id, hop.control)
        queue.setAwaiting(true)
        let transfer = context.pool.start(transfer) { events in
            if control.deliver(events) { self.takeEvents(of: id, from: control) }
        }
        control.begin(transfer)
    }

    nonisolated private func takeEvents(of id: Int, from control: TransferControl) {
        perform { core in
            let (events, isMore) = control.take()
            for event in events where core.current.hop?.id == id { core.received(event) }
            if isMore { core.takeEvents(of: id, from: control) }
        }
    }

    /// - Parameter replacements: The fields that replace those of the request and the session. Unlike the fields of a
    ///   `URLRequest`, they may have exact values.
    private func transfer(
        of request: URLRequest,
        replacing replacements: [TransferRequest.Header],
        _ upload: UploadBody?,
        _ credentials: TransferCredentials?,
        isCrossOrigin: Bool
    ) throws -> TransferRequest {
        if let property = context.settings.refusal {
            throw AFError.sessionConfigurationRefused(property: property)
        }
        try options.check()
        let settings = context.settings
        let fields = TransferRequest.headers(
            of: request,
            settings: settings,
            isCrossOrigin: isCrossOrigin,
            redirects: options.redirects ?? []
        ).replacing(with: replacements)
        try request.validateForSending(
            body: upload.map { .upload(byteCount: $0.byteCount) } ?? .own,
            fields: fields
        )
        var transfer = try TransferRequest(request, fields, upload: upload, settings: settings)
        try plan.policy.checkOrigin(of: transfer)
        transfer.credentials = credentials.flatMap { permitted($0, for: request.url) }
        transfer.maximumResponseBodyBytes = plan.policy.maximumResponseBytes
        if let allowsReuse = plan.policy.allowsConnectionReuse {
            transfer.allowsConnectionReuse = allowsReuse
        }
        transfer.allowsResending = plan.policy.allowsResending
        transfer.binding = plan.policy.binding
        transfer.bodyTimeout = plan.policy.bodyTimeout
        transfer.apply(options)
        if let version = plan.policy.httpVersion { transfer.usesHTTP1 = version == .http1 }
        if let connectTimeout = plan.policy.connectTimeout { transfer.connectTimeout = connectTimeout }
        transfer.responseTimeout = plan.policy.responseTimeout
        transfer.idleTimeout = idleTimeout(of: request)
        let total = plan.policy.totalTimeout ?? options.totalTimeoutDuration ?? context.settings.totalTimeout
        transfer.totalTimeout = total - current.began.duration(to: .now)
        return transfer
    }

    /// Returns the idle timeout, which is the first of these that is set:
    ///
    /// 1. the idle timeout in the request's own options
    /// 2. the `timeoutInterval` of the `URLRequest`, if it is not the default
    /// 3. the idle timeout in the session's options
    /// 4. the idle timeout of the session's configuration
    nonisolated func idleTimeout(of request: URLRequest) -> Duration {
        let hasOwn = request.timeoutInterval != SessionSettings.defaultIdleTimeout
        let option = hasOwn ? plan.options.idleTimeout : options.idleTimeout
        return option.map { Duration(seconds: $0) } ?? context.settings.idleTimeout(of: request)
    }

    // MARK: Transfer events

    func received(_ event: TransferEvent) {
        // If the request was cancelled after its last event, nothing else would end it.
        if !state.isInterrupted, current.deferring(event) { return }
        switch event {
        case .connected(let peer): context.recordConnection(to: peer)
        case .head(let head): headArrived(head)
        case .body(let piece): bodyArrived(piece)
        case .progress(let progress): progressed(progress)
        case .end(let end): hopEnded(end)
        }
    }

    private func headArrived(_ head: TransferHead) {
        guard let hop = current.hop, hop.failure == nil else { return }
        let response = ResponseHead(head, from: hop.url)
        current.received(response)
        context.settings.cookies?.store(
            response.head.fields.exactValues(of: "Set-Cookie"),
            from: hop.url,
            mainDocumentURL: hop.request.mainDocumentURL
        )
        notifyMonitors { monitor, request in
            response.response.map { monitor.request(request, didReceive: $0) }
        }
        decide(on: response, hop)
    }

    private func bodyArrived(_ piece: BodyPiece) {
        guard let hop = current.hop, hop.failure == nil else { return }
        switch hop.disposition {
        case .undecided: break
        case .accept:
            do { try sink.write(piece) } catch { abandonHop(error) }
        case .follow:
            current.drained(piece.count)
            if hop.drainedBytes > Hop.drainLimit { hop.control.cancel() }
        }
    }

    private func progressed(_ progress: TransferProgress) {
        guard let hop = current.hop else { return }
        // After a redirect without the body, the bytes that were sent before still count.
        if !current.hasTransactions || progress.toSend != 0 {
            uploadProgress?.update(progress.sent, of: progress.toSend)
        }
        guard case .accept = hop.disposition else { return }
        let offset = sink.offset
        // The sum may overflow, because the server can announce any length.
        let total = progress.toReceive.map { $0.addingReportingOverflow(offset) }
        downloadProgress.update(
            progress.received + offset,
            of: total.flatMap { $0.overflow ? nil : $0.partialValue }
        )
    }

    func abandonHop(_ error: any Error) {
        current.failed(error)
        current.hop?.control.cancel()
    }

    private func hopEnded(_ end: TransferEnd) {
        guard let hop = current.hop else { return }
        record(end.metrics, of: hop)
        if let credentials = lateCredentials(for: hop) {
            current.decide(.follow(hop.request, .credential(credentials)))
            // The bytes of the 401 do not count, because this response is discarded.
            downloadProgress.restart()
        }
        if let hop = current.hop, case .follow = hop.disposition, !state.isInterrupted {
            return hopFollows(hop)
        }
        guard hop.failure == nil, let failure = end.failure else { return attemptEnded(hop.failure) }
        transferFailed(failure, end.metrics, hop)
    }

    /// Ends the attempt with a transfer's failure. Before that, asks the kernel whether the failure means that there is
    /// no network.
    private func transferFailed(_ failure: TransferFailure, _ metrics: TransferMetrics, _ hop: Hop) {
        guard hop.head == nil, context.settings.unixSocketPath == nil,
            let check = OfflineCheck(failure, hop.url, metrics)
        else { return attemptEnded(failure.error(for: hop.url, under: hop.trustPolicy)) }
        let (id, url) = (hop.id, hop.url)
        context.paths.evaluate(check) { verdict in
            self.perform { core in
                guard core.current.hop?.id == id else { return }
                let explained = failure.explained(by: verdict)
                core.attemptEnded(explained.error(for: url, isOffline: verdict.isOffline))
            }
        }
    }

    /// Starts the next hop. If the request is suspended, the next hop is held until the request is resumed.
    private func hopFollows(_ hop: Hop) {
        guard case .follow(let next, let reason) = hop.disposition else { return }
        current.hold(state.isSuspended)
        if !state.isSuspended { follow(next, reason, after: hop) }
    }

    private func follow(_ next: URLRequest, _ reason: Hop.Reason, after hop: Hop) {
        switch reason {
        case .redirect(let keepsBody, let crossesOrigin, let sentText):
            let isCrossOrigin = hop.isCrossOrigin || crossesOrigin
            let upload = keepsBody ? hop.upload : nil
            let credentials = isCrossOrigin ? nil : ownCredentials
            sendHop(next, upload, credentials, sentText: sentText, isCrossOrigin: isCrossOrigin)
        case .credential(let credentials):
            current.challengeCredentials = credentials
            sendAgain(next, credentials, after: hop)
        case .withoutRange:
            sendAgain(next, hop.isCrossOrigin ? nil : ownCredentials, after: hop)
        }
    }

    private func sendAgain(_ next: URLRequest, _ credentials: TransferCredentials?, after hop: Hop) {
        sendHop(next, hop.upload, credentials, sentText: hop.sentText, isCrossOrigin: hop.isCrossOrigin)
    }

    // MARK: Metrics

    private func record(_ metrics: TransferMetrics, of hop: Hop) {
        context.plainAuthentication.note(metrics.offeredSchemes, offeredBy: hop.url)
        current.record(Transaction(metrics: metrics, request: hop.sent, head: hop.head))
    }

    /// Publishes the metrics of the attempt that has ended.
    func publishMetrics() {
        guard let metrics = current.metrics(outcome.clock) else { return }
        outcome.metrics = metrics
        snapshot.change { $0.metrics = metrics }
    }
}
