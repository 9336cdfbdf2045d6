internal import CNetwatchCurl
internal import NetwatchEventLoop

// Name lookup and connection of a transfer.

extension TransferEngine {
    /// Looks the host up if it is a name, and connects to it.
    ///
    /// - Parameter transfer: The transfer, if libcurl has run it before.
    func connect(_ id: TransferID, _ transfer: Transfer? = nil) {
        guard let prospect = entries[id]?.prospect else { return }
        limitConnecting(id, prospect, prospect.needsConnection(transfer))
        if prospect.target.needsLookup { lookUp(id, prospect) } else { race(id, prospect) }
    }

    private func limitConnecting(_ id: TransferID, _ prospect: Prospect, _ timeout: Duration) {
        prospect.timer = loop.schedule(at: .now + timeout) { [weak self] in
            self?.assumeIsolated { $0.connectingTookTooLong(id, timeout) }
        }
    }

    private func lookUp(_ id: TransferID, _ prospect: Prospect) {
        entries[id]?.stage = .lookingUp
        prospect.lookup = resolver.resolve(prospect.target.url.host) { [weak self] outcome in
            self?.perform { $0.lookedUp(id, outcome) }
        }
    }

    /// Abandons a lookup, and returns the failure for the transfer.
    func stopLookup(_ prospect: Prospect, _ code: CURLcode, _ message: String) -> TransferFailure {
        let hasWaitedOnly = prospect.lookup.map(resolver.abandon) ?? false
        prospect.lookup = nil
        return hasWaitedOnly
            ? .refused(code, "\(message) while no thread was free for it") : .duringLookup(code, message)
    }

    private func lookedUp(_ id: TransferID, _ outcome: NameResolver.Outcome) {
        guard let entry = entries[id], entry.stage == .lookingUp else { return }
        begin(
            attempt(id) { () throws(TransferFailure) in
                try entry.prospect.take(outcome)
                race(id, entry.prospect)
            }
        )
    }

    private func race(_ id: TransferID, _ prospect: Prospect) {
        entries[id]?.stage = .connecting
        let url = prospect.target.url
        let winner = winners.address(of: url.host, port: UInt16(url.port))
        let connector = Connector(
            loop: loop,
            race: ConnectionRace(prospect.target.candidates, preferring: winner),
            port: UInt16(url.port)
        ) { [weak self] outcome in
            self?.assumeIsolated { $0.connected(id, outcome) }
        }
        prospect.connector = connector
        connector.assumeIsolated { $0.start() }
    }

    private func connected(_ id: TransferID, _ outcome: Connector.Outcome) {
        guard let entry = entries[id], entry.stage == .connecting else { return }
        entry.prospect.timer.map(loop.cancel)
        begin(
            attempt(id) { () throws(TransferFailure) in
                switch outcome {
                case .failure(let failure):
                    resolver.doubt(entry.prospect.target.url.host)
                    throw .notConnected(failure)
                case .success(let connection):
                    entry.prospect.isConnected(to: connection.address)
                    try launch(id, over: connection.socket)
                }
            }
        )
    }

    private func connectingTookTooLong(_ id: TransferID, _ timeout: Duration) {
        guard let entry = entries[id] else { return }
        switch entry.stage {
        case .lookingUp:
            let start = entry.prospect.lookup.flatMap(resolver.start)
            let rest = start.map { entry.prospect.remainder(of: timeout, since: $0) } ?? .zero
            if rest > .zero { return limitConnecting(id, entry.prospect, rest) }
            end(id, CURLE_OPERATION_TIMEDOUT, "the name lookup timed out")
        case .connecting:
            let failure = entry.prospect.stopConnecting()
            resolver.doubt(entry.prospect.target.url.host)
            begin(abandon(id, .connectTimedOut(after: timeout, failure)))
        case .waiting, .underWay: break
        }
    }

    // MARK: Lost packets

    nonisolated func restartStalled(to host: String, of pool: TransferPool.ID) {
        perform { engine in
            for (id, entry) in engine.entries
            where entry.door.pool == pool && entry.prospect.target.url.bareHost == host {
                engine.restartIfStalled(id, entry)
            }
        }
    }

    /// The kernel repeats lost packets after 0.2 s at the earliest, and those that open a connection after a second.
    private func restartIfStalled(_ id: TransferID, _ entry: Entry) {
        switch entry.stage {
        case .waiting, .lookingUp: break
        case .connecting:
            _ = entry.prospect.stopConnecting()
            race(id, entry.prospect)
        case .underWay:
            let multi = entry.multi.flatMap { multis[$0] }
            if let transfer = multi?.leaveStalledConnection(id) { connect(id, transfer) }
        }
    }

    // MARK: The preferred address

    func hasServed(_ id: TransferID) {
        guard let prospect = entries[id]?.prospect, let address = prospect.connectedTo else { return }
        prospect.connectedTo = nil
        winners.remember(address, of: prospect.target.url.host, port: UInt16(prospect.target.url.port))
    }

    /// Forgets the preferred address: one that accepts connections and never responds must not stay preferred.
    func hasEnded(_ prospect: Prospect) {
        guard let address = prospect.connectedTo else { return }
        winners.forget(address, of: prospect.target.url.host, port: UInt16(prospect.target.url.port))
    }
}
