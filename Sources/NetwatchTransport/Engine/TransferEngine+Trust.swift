internal import CNetwatchCurl
internal import NetwatchEventLoop

// The program's decisions about servers. They are made on separate threads, because the program's code may block.

extension TransferEngine {
    /// Makes a transfer wait until the program has decided whether the server is trusted.
    func ask(_ question: TrustQuestion, for id: TransferID, _ transfer: EngineTransfer) {
        let limit = transfer.waitForDecision()
        transfer.timer = loop.schedule(at: .now + limit) { [weak self] in
            let message = "the program has not evaluated the server's certificates within \(limit)"
            self?.assumeIsolated { $0.end(id, CURLE_OPERATION_TIMEDOUT, message) }
        }
        start(questions.add(id, question, at: .now))
        // The other transfers to the host need not wait for the program's code. They get their own time limits.
        begin(limiter.transferConnected(transfer.key))
    }

    private func start(_ calls: [TrustQuestions.Call]) {
        for call in calls {
            do throws(SystemError) {
                try startDetachedThread(named: "nw-trust") { [weak self] in
                    let isAccepted = call.question.check.evaluate(call.question.presented)
                    self?.perform { $0.hasDecided(call, isAccepted) }
                }
            } catch {
                let failure = TransferFailure(CURLE_FAILED_INIT, .tls, errno: error.errno, "\(error)")
                end(call, isAccepted: false) { engine, id, _ in engine.begin(engine.fail(id, failure)) }
            }
        }
    }

    private func hasDecided(_ call: TrustQuestions.Call, _ isAccepted: Bool) {
        let message = "the program has rejected the server's certificates"
        let rejection = TransferFailure(CURLE_PEER_FAILED_VERIFICATION, .tls, message)
        end(call, isAccepted: isAccepted) { engine, id, transfer in
            guard isAccepted else { return engine.begin(engine.fail(id, rejection)) }
            transfer.stopTimer(engine.loop)
            transfer.curlTransfer?.accept(call.question.presented)
            engine.reconnect(id, transfer)
        }
    }

    /// Ends a call, and continues with the transfers that get its answer. Starts the calls that had to wait for its end.
    private func end(
        _ call: TrustQuestions.Call,
        isAccepted: Bool,
        _ proceed: (isolated TransferEngine, TransferID, EngineTransfer) -> Void
    ) {
        let ended = questions.end(call.number, isAccepted: isAccepted, at: .now)
        if let start = ended.acceptedAt {
            call.question.check.remember(call.question.presented, since: start)
        }
        for id in ended.transfers {
            if let transfer = transfers[id] { proceed(self, id, transfer) }
        }
        start(ended.next)
    }
}
