internal import CNetwatchCurl
internal import NetwatchEventLoop

// Name lookup and connection attempts of a stream.

extension StreamConnection {
    func begin() {
        guard case .idle = phase else { return }
        guard (1...65535).contains(port) else {
            return end(.stream(CURLE_URL_MALFORMAT, .prepare, "port \(port) is not from 1 to 65535"))
        }
        // The C string would end at the NUL, and netwatch would connect to another host.
        guard !host.isEmpty, !host.utf8.contains(0) else {
            return end(.stream(CURLE_URL_MALFORMAT, .prepare, "the host name is empty or contains NUL"))
        }
        connectTimer = loop.schedule(at: .now + connectTimeout) {
            self.assumeIsolated { $0.connectingTookTooLong() }
        }
        if let address = IPAddress(host) { return connect(to: [address]) }
        phase = .resolving
        lookup = resolver.resolve(host) { outcome in
            self.perform { $0.lookedUp(outcome) }
        }
    }

    private func connectingTookTooLong() {
        if case .resolving = phase {
            let hasWaitedOnly = lookup.map(resolver.abandon) ?? false
            lookup = nil
            let (phase, what) =
                hasWaitedOnly
                ? (TransferFailure.Phase.prepare, " while no thread was free for it") : (.resolve, "")
            end(.stream(CURLE_OPERATION_TIMEDOUT, phase, "the name lookup timed out\(what)"))
        } else {
            end(.connectTimedOut(after: connectTimeout, stopConnecting()))
        }
    }

    private func lookedUp(_ outcome: NameResolver.Outcome) {
        guard case .resolving = phase else { return }
        lookup = nil
        switch outcome {
        case .success(let addresses): connect(to: addresses)
        case .failure(let failure): end(.noAddress(failure))
        }
    }

    /// The port was validated in `begin()`.
    private func connect(to addresses: [IPAddress]) {
        phase = .connecting
        let winner = winners.address(of: host, port: UInt16(port))
        let race = ConnectionRace(addresses.map { ConnectionCandidate($0) }, preferring: winner)
        let connector = Connector(loop: loop, race: race, port: UInt16(port)) { outcome in
            self.assumeIsolated { $0.connected(outcome) }
        }
        self.connector = connector
        connector.assumeIsolated { $0.start() }
    }

    private func connected(_ outcome: Connector.Outcome) {
        stopConnecting()
        switch outcome {
        case .success(let connection):
            winners.remember(connection.address, of: host, port: UInt16(port))
            phase = .open(connection.socket)
            advance()
        case .failure(let failure):
            resolver.doubt(host)
            end(.notConnected(failure))
        }
    }

    /// Closes the sockets of all connection attempts. Returns their outcomes.
    @discardableResult
    func stopConnecting() -> ConnectionFailure? {
        connectTimer.map(loop.cancel)
        connectTimer = nil
        lookup.map { _ = resolver.abandon($0) }
        lookup = nil
        defer { connector = nil }
        return connector?.assumeIsolated { $0.stop() }
    }
}
