internal import CNetwatchCurl
internal import NetwatchEventLoop

// The program's decisions about servers. They are made on separate threads, because the program's code may block.

extension TransferEngine {
    /// Makes a transfer wait until the program has decided whether the server is trusted.
    func ask(_ question: TrustQuestion, for id: TransferID, _ transfer: EngineTransfer) {
        let limit = transfer.waitForDecision()
        transfer.timer = loop.scheduleLimit(limit) { [weak self] in
            let message = "the program has not evaluated the server's certificates within \(limit)"
            self?.assumeIsolated { $0.end(id, CURLE_OPERATION_TIMEDOUT, message) }
        }
        start(questions.add(id, question, at: .now))
        // The other transfers to the host need not wait for the program's code. They get their own time limits.
        begin(limiter.endProbing(transfer.host))
    }

    /// Starts the threads of calls. If that fails, ends the transfers that wait for the call, and starts the calls that
    /// had to wait for its end.
    private func start(_ calls: [TrustQuestions.Call]) {
        var calls = calls[...]
        while let call = calls.popFirst() {
            do throws(SystemError) {
                try startDetachedThread(named: "nw-trust") { [weak self] in
                    let isAccepted = call.question.check.evaluate(call.question.presented)
                    self?.perform { $0.hasDecided(call, isAccepted) }
                }
            } catch {
                let failure = TransferFailure(CURLE_FAILED_INIT, .tls, errno: error.errno, "\(error)")
                let ended = questions.end(call.number, isAccepted: false, at: .now)
                for id in ended.transfers { begin(fail(id, failure)) }
                calls += ended.next
            }
        }
    }

    /// Continues with the transfers that get the answer of a call. Starts the calls that had to wait for its end.
    private func hasDecided(_ call: TrustQuestions.Call, _ isAccepted: Bool) {
        let server = call.question.presented
        let ended = questions.end(call.number, isAccepted: isAccepted, at: .now)
        if let start = ended.acceptedAt { call.question.check.remember(server, since: start) }
        if isAccepted {
            reconnect(ended.transfers, accepting: server)
        } else {
            let message = "the program has rejected the server's certificates"
            let rejection = TransferFailure(CURLE_PEER_FAILED_VERIFICATION, .tls, message)
            for id in ended.transfers { begin(fail(id, rejection)) }
        }
        start(ended.next)
    }

    /// Reconnects transfers whose server the program has accepted. Of the transfers to a host that may share
    /// connections, only the first one connects now. The others wait until it is connected, because only its handshake
    /// shows whether they can share its connection.
    private func reconnect(_ ids: [TransferID], accepting server: PresentedTrust) {
        var connecting: [(id: TransferID, transfer: EngineTransfer)] = []
        var hosts: Set<ObjectIdentifier> = []
        for id in ids {
            guard let transfer = transfers[id] else { continue }
            transfer.stopTimer(loop)
            transfer.curlTransfer?.accept(server)
            if transfer.target.mayShareConnections, !hosts.insert(ObjectIdentifier(transfer.host)).inserted {
                waitForConnection(id, transfer)
            } else {
                connecting.append((id, transfer))
            }
        }
        // This comes last: if a transfer fails immediately, those that wait for it begin.
        for (id, transfer) in connecting { reconnect(id, transfer) }
    }

    private func waitForConnection(_ id: TransferID, _ transfer: EngineTransfer) {
        let request = transfer.target.request
        transfer.stage = .waiting
        let remaining = request.totalTimeout.map { $0 - transfer.reporter.elapsed }
        transfer.timer = waitingTimer(for: id, after: remaining)
        limiter.waitForConnection(id, of: transfer.host, priority: request.urgency)
    }
}
