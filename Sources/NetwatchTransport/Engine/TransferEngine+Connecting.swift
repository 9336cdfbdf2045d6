internal import CNetwatchCurl
internal import NetwatchEventLoop

// The connections of transfers: the first one, and those that replace it.

extension TransferEngine {
    /// Begins to connect to the host of a transfer.
    func connect(_ id: TransferID, _ transfer: EngineTransfer) {
        let url = transfer.target.url
        let connector = HostConnector(
            to: url.host,
            port: UInt16(url.port),
            loop: loop,
            resolver: resolver,
            preferredAddresses: preferredAddresses
        ) { [weak self] event in
            self?.assumeIsolated { $0.handle(event, of: id) }
        }
        transfer.connect(with: connector)
    }

    /// Takes back a transfer that libcurl ran until it needed another connection. Makes the connection, if necessary
    /// after the program has accepted the server.
    func takeBack(_ curlTransfer: Transfer) {
        let id = curlTransfer.id
        guard let transfer = transfers[id] else { return }
        transfer.takeBack(curlTransfer)
        if let question = curlTransfer.question {
            ask(question, for: id, transfer)
        } else {
            reconnect(id, transfer)
        }
    }

    /// Makes another connection for a transfer that libcurl ran before. libcurl itself connects to unix sockets.
    func reconnect(_ id: TransferID, _ transfer: EngineTransfer) {
        guard !transfer.target.needsConnector else { return connect(id, transfer) }
        begin(attempt(id) { () throws(TransferFailure) in try launch(id) })
    }

    private func handle(_ event: HostConnector.Event, of id: TransferID) {
        guard let transfer = transfers[id], transfer.stage == .connecting else { return }
        begin(
            attempt(id) { () throws(TransferFailure) in
                switch event {
                case .resolved(let outcome): try transfer.lookedUp(outcome)
                case .connected(let connection):
                    transfer.isConnected(to: connection.address)
                    try launch(id, over: connection.socket)
                case .failed(let failure): throw .notConnected(failure)
                case .lookupTimedOut(let hasStarted): throw .lookupTimedOut(hasStarted: hasStarted)
                case .connectTimedOut(let timeout, let failure):
                    throw .connectTimedOut(after: timeout, failure)
                }
            }
        )
    }

    /// Ends the unanswered transfers of a pool to a peer; see ``TransferPool/endUnanswered(by:)``.
    func endUnansweredTransfers(by peer: ConnectionPeer, of pool: TransferPool.ID) {
        for (id, transfer) in transfers
        where transfer.host.key.pool == pool && transfer.stage == .running
            && transfer.target.request.binding == nil
        {
            let multi = transfer.multi.flatMap { multis[$0] }
            guard multi?.isUnanswered(id, by: peer) == true else { continue }
            end(id, CURLE_RECV_ERROR, "the path to \(transfer.target.url.bareHost) was lost")
        }
    }

    /// Restarts the stalled transfers of a pool to a port of a host; see ``TransferPool/restartStalled(to:port:)``.
    func restartStalledTransfers(to host: String, port: Int, of pool: TransferPool.ID) {
        for (id, transfer) in transfers
        where transfer.host.key.pool == pool && transfer.target.url.bareHost == host
            && transfer.target.url.port == port
        {
            restartIfStalled(id, transfer)
        }
    }

    /// Restarts a transfer whose packets may be lost. Waiting for the kernel would take longer: it repeats a lost
    /// packet after 0.2 s at the earliest, and a lost SYN after 1 s.
    private func restartIfStalled(_ id: TransferID, _ transfer: EngineTransfer) {
        switch transfer.stage {
        case .waiting, .deciding: break
        case .connecting: transfer.reconnect()
        case .running:
            let multi = transfer.multi.flatMap { multis[$0] }
            if let curlTransfer = multi?.leaveStalledConnection(id) { takeBack(curlTransfer) }
        }
    }
}

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
