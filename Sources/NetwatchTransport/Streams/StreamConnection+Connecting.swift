internal import CNetwatchCurl
internal import NetwatchEventLoop

// From a name to a socket: RFC 8305, with the system's resolver for both families at once.

extension StreamConnection {
    /// A socket that is being connected.
    struct Attempt {
        let socket: StreamSocket
        let registration: EventLoop.Registration
    }

    func begin() {
        guard case .idle = phase else { return }
        guard (1...65535).contains(port) else {
            return end(.stream(CURLE_URL_MALFORMAT, .prepare, "port \(port) is not from 1 to 65535"))
        }
        // C would end the name there, and another host be connected to.
        guard !host.isEmpty, !host.utf8.contains(0) else {
            return end(.stream(CURLE_URL_MALFORMAT, .prepare, "the host name is empty or contains NUL"))
        }
        connectTimer = loop.schedule(at: .now + connectTimeout) {
            self.assumeIsolated { $0.connectingTookTooLong() }
        }
        if let address = IPAddress(host) { return connect(to: [address]) }
        phase = .resolving
        resolver.resolve(host) { outcome in
            self.perform { $0.lookedUp(outcome) }
        }
    }

    private func connectingTookTooLong() {
        if case .resolving = phase {
            end(.stream(CURLE_OPERATION_TIMEDOUT, .resolve, "the name lookup timed out"))
        } else {
            end(.stream(CURLE_OPERATION_TIMEDOUT, .connect, "no answer within \(connectTimeout)"))
        }
    }

    private func lookedUp(_ outcome: NameResolver.Outcome) {
        guard case .resolving = phase else { return }
        switch outcome {
        case .success(let addresses): connect(to: addresses)
        case .failure(let failure): end(.noAddress(failure))
        }
    }

    private func connect(to addresses: [IPAddress]) {
        phase = .connecting
        race = AddressRace(addresses)
        tryNext()
    }

    private func tryNext() {
        if let raceTimer { loop.cancel(raceTimer) }
        raceTimer = nil
        while let address = race.next() {
            do throws(SystemError) {
                try attempt(address)
                return scheduleNext()
            } catch {
                race.failed(error)
            }
        }
        if attempts.isEmpty, let error = race.verdict { end(.notConnected(error)) }
    }

    private func attempt(_ address: IPAddress) throws(SystemError) {
        // The port was looked at in `begin()`.
        let socket = try StreamSocket.connecting(to: address, port: UInt16(port), on: loop)
        let registration = try loop.register(socket.descriptor, for: .write) { _ in
            self.assumeIsolated { $0.isDecided(socket) }
        }
        attempts[socket.descriptor] = Attempt(socket: socket, registration: registration)
    }

    private func scheduleNext() {
        raceTimer = loop.schedule(at: .now + AddressRace.delay) {
            self.assumeIsolated { $0.tryNext() }
        }
    }

    private func isDecided(_ socket: StreamSocket) {
        guard let attempt = attempts.removeValue(forKey: socket.descriptor) else { return }
        loop.unregister(attempt.registration)
        let outcome = socket.outcome
        guard outcome == 0 else {
            race.failed(SystemError(call: "connect", errno: outcome))
            return tryNext()
        }
        stopConnecting()
        phase = .open(socket)
        advance()
    }

    /// Closes the sockets that are not needed any more.
    func stopConnecting() {
        for attempt in attempts.values { loop.unregister(attempt.registration) }
        attempts = [:]
        for timer in [raceTimer, connectTimer].compactMap(\.self) { loop.cancel(timer) }
        raceTimer = nil
        connectTimer = nil
    }
}
