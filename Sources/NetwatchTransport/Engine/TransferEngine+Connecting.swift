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
