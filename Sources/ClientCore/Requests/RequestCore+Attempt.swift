internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

// One attempt: the transfers that redirects and challenges make of it.

extension RequestCore {
    func send() {
        guard let request = outcome.request else { return }
        outcome.clock.start()
        outcome.clock.restart()
        outcome.head = nil
        outcome.metrics = nil
        transactions = []
        redirects = 0
        hasAnsweredChallenge = false
        challengeCredentials = nil
        attemptBegan = .now
        uploadProgress.restart()
        downloadProgress.restart()
        upload = plan.upload ?? UploadBody(streamOf: request, after: upload)
        sendHop(request, upload, ownCredentials, isForeign: false)
    }

    /// Ends the transfer under way, or the attempt if it is between two.
    func stop() {
        guard let hop else { return }
        if hop.isHeld {
            attemptEnded(URLError(.cancelled))
        } else {
            hop.control.cancel()
        }
    }

    func unpause() {
        guard let hop else { return }
        if hop.isHeld { hopFollows(hop) } else { hop.control.suspend(false) }
    }

    private var ownCredentials: TransferCredentials? {
        guard plan.policy.followsRedirects else { return nil }
        return snapshot.now.credential.flatMap { TransferCredentials($0) } ?? challengeCredentials
    }

    /// Sends one request. Whatever is wrong with it ends the attempt, in a turn of its own: the first request may be
    /// sent on a thread of the program's.
    private func sendHop(
        _ request: URLRequest,
        _ upload: UploadBody?,
        _ credentials: TransferCredentials?,
        isForeign: Bool
    ) {
        do {
            var sent = request
            try sink.prepare(&sent)
            hops += 1
            let upload = renewed(upload)
            var transfer = try transfer(of: sent, upload, credentials, isForeign: isForeign)
            let trust = try context.trust.decision(for: request.url)
            if let trust { transfer.trust = trust.trust }
            let hop = Hop(
                id: hops,
                request: request,
                sent: sent,
                url: try request.url ?? { throw URLError(.badURL) }(),
                control: TransferControl(context.engine),
                upload: upload,
                isAuthenticated: credentials != nil,
                isForeign: isForeign,
                trustPolicy: trust?.policy
            )
            self.hop = hop
            isAuthenticated = hop.isAuthenticated
            snapshot.change { $0.current = sent }
            tell { $0.request($1, willSend: sent) }
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
            for event in events where core.hop?.id == id { core.received(event) }
            if isMore { core.takeEvents(of: id, from: control) }
        }
    }

    private func transfer(
        of request: URLRequest,
        _ upload: UploadBody?,
        _ credentials: TransferCredentials?,
        isForeign: Bool
    ) throws -> TransferRequest {
        if let property = context.settings.refusal {
            throw AFError.sessionConfigurationRefused(property: property)
        }
        try options.check()
        let settings = context.settings
        let fields = TransferRequest.headers(of: request, settings: settings, isForeign: isForeign)
        try request.validateForSending(
            body: upload.map { .upload(byteCount: $0.byteCount) } ?? .own,
            fields: fields
        )
        var transfer = try TransferRequest(request, fields, upload: upload, settings: settings)
        transfer.credentials = credentials
        transfer.maximumResponseBodyBytes = plan.policy.maximumResponseBytes
        if let allowsReuse = plan.policy.allowsConnectionReuse {
            transfer.allowsConnectionReuse = allowsReuse
        }
        transfer.allowsResending = plan.policy.allowsResending
        transfer.bodyTimeout = plan.policy.bodyTimeout
        transfer.apply(options)
        if let connectTimeout = plan.policy.connectTimeout { transfer.connectTimeout = connectTimeout }
        transfer.responseTimeout = plan.policy.responseTimeout
        transfer.idleTimeout = idleTimeout(of: request)
        let total = plan.policy.totalTimeout ?? options.longest ?? context.settings.totalTimeout
        transfer.totalTimeout = total - attemptBegan.duration(to: .now)
        return transfer
    }

    /// A request's own `timeoutInterval` is nearer than the session's options, but not than its own.
    nonisolated func idleTimeout(of request: URLRequest) -> Duration {
        let hasOwn = request.timeoutInterval != SessionSettings.defaultIdleTimeout
        let option = hasOwn ? plan.options.idleTimeout : options.idleTimeout
        return option.map { Duration(seconds: $0) } ?? context.settings.idleTimeout(of: request)
    }

    // MARK: What comes back

    private func received(_ event: TransferEvent) {
        switch event {
        case .head(let head): headArrived(head)
        case .body(let piece): bodyArrived(piece.bytes)
        case .progress(let progress): progressed(progress)
        case .end(let end): hopEnded(end)
        }
    }

    private func headArrived(_ head: TransferHead) {
        guard let hop, hop.failure == nil else { return }
        let response = ResponseHead(head, from: hop.url)
        self.hop?.head = response
        context.settings.cookies?.take(
            response.values(of: "Set-Cookie"),
            from: hop.url,
            mainDocumentURL: hop.request.mainDocumentURL
        )
        tell { monitor, request in
            response.response.map { monitor.request(request, didReceive: $0) }
        }
        do {
            // On its own: an assignment's left side is accessed first, and then for as long as the right one
            // takes, which asks the program.
            let fate = try fate(of: response, hop)
            self.hop?.fate = fate
        } catch {
            abandonHop(error)
        }
    }

    private func fate(of response: ResponseHead, _ hop: Hop) throws -> Hop.Fate {
        if let next = try redirection(response, hop) { return next }
        if let next = try answerToChallenge(response, hop) { return next }
        switch try sink.begin(response) {
        case .sendAgain: return .follow(hop.request, .withoutRange)
        case .take: break
        }
        outcome.head = response
        outcome.clock.responseBegan()
        snapshot.change { $0.head = response }
        try askWhetherWanted(response)
        return .take
    }

    private func askWhetherWanted(_ response: ResponseHead) throws {
        guard let ask = context.delegate.dataTaskDidReceiveResponse, let session = context.manager,
            let response = response.response
        else { return }
        if case .cancel = ask(session, task, response) { throw URLError(.cancelled) }
    }

    private func bodyArrived(_ bytes: [UInt8]) {
        guard let hop, hop.failure == nil else { return }
        switch hop.fate {
        case .undecided: break
        case .take:
            do { try sink.write(bytes) } catch { abandonHop(error) }
        case .follow:
            self.hop?.drained += bytes.count
            if hop.drained + bytes.count > Hop.drainLimit { hop.control.cancel() }
        }
    }

    private func progressed(_ progress: TransferProgress) {
        guard let hop else { return }
        // A redirect that drops the body has not taken back what was sent.
        if transactions.isEmpty || progress.toSend != 0 {
            uploadProgress.update(progress.sent, of: progress.toSend)
        }
        guard case .take = hop.fate else { return }
        let offset = sink.offset
        // The server chooses the length, up to the largest number that there is.
        let total = progress.toReceive.map { $0.addingReportingOverflow(offset) }
        downloadProgress.update(
            progress.received + offset,
            of: total.flatMap { $0.overflow ? nil : $0.partialValue }
        )
    }

    private func abandonHop(_ error: any Error) {
        hop?.failure = error
        hop?.control.cancel()
    }

    private func hopEnded(_ end: TransferEnd) {
        guard let hop else { return }
        record(end.metrics, of: hop)
        if let credentials = lateCredentials(for: hop) {
            self.hop?.fate = .follow(hop.request, .credential(credentials))
            // What came was not the response after all.
            downloadProgress.restart()
        }
        if let hop = self.hop, case .follow = hop.fate, !state.isInterrupted { return hopFollows(hop) }
        guard hop.failure == nil, let failure = end.failure else { return attemptEnded(hop.failure) }
        transferFailed(failure, end.metrics, hop)
    }

    /// Asks the kernel about a failure that may be that of having no network, before anybody hears of it.
    private func transferFailed(_ failure: TransferFailure, _ metrics: TransferMetrics, _ hop: Hop) {
        guard context.settings.unixSocketPath == nil,
            let suspicion = OfflineSuspicion(failure, hop.url, addresses: metrics.addresses)
        else { return attemptEnded(failure.error(for: hop.url, under: hop.trustPolicy)) }
        context.paths.judge(suspicion) { verdict in
            self.perform { core in
                guard core.hop?.id == hop.id else { return }
                core.attemptEnded(failure.error(for: hop.url, isOffline: verdict.isOffline))
            }
        }
    }

    /// A suspended request waits between its hops.
    private func hopFollows(_ hop: Hop) {
        guard case .follow(let next, let reason) = hop.fate else { return }
        self.hop?.isHeld = state.isSuspended
        if !state.isSuspended { follow(next, reason, after: hop) }
    }

    private func follow(_ next: URLRequest, _ reason: Hop.Next, after hop: Hop) {
        switch reason {
        case .redirect(let keepsBody, let crossesOrigin):
            let isForeign = hop.isForeign || crossesOrigin
            let upload = keepsBody ? hop.upload : nil
            sendHop(next, upload, isForeign ? nil : ownCredentials, isForeign: isForeign)
        case .credential(let credentials):
            challengeCredentials = credentials
            sendHop(next, hop.upload, credentials, isForeign: hop.isForeign)
        case .withoutRange:
            sendHop(next, hop.upload, hop.isForeign ? nil : ownCredentials, isForeign: hop.isForeign)
        }
    }
}
