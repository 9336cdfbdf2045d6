internal import CNetwatchCurl
internal import NetwatchEventLoop

// The functions that may be called on any thread.

extension TransferEngine {
    /// Whether the caller runs on the engine's thread.
    package nonisolated var isCurrent: Bool { loop.isCurrent }

    /// Starts a transfer in the common pool, which transfers without a session use; see
    /// ``TransferPool/start(_:deliver:)``.
    @discardableResult
    package nonisolated func start(
        _ request: TransferRequest,
        deliver: @escaping @Sendable (TransferEvent) -> Void
    ) -> TransferID {
        start(request, .common, TransferPool.defaultConnectionsPerHost) { for event in $0 { deliver(event) } }
    }

    nonisolated func start(
        _ request: TransferRequest,
        _ pool: TransferPool.ID,
        _ connectionsPerHost: Int,
        _ deliver: @escaping @Sendable ([TransferEvent]) -> Void
    ) -> TransferID {
        let id = TransferID()
        let startedAt = BootInstant.now
        do throws(SystemError) {
            try startThreads()
        } catch {
            TransferReporter(of: request, startedAt: startedAt, deliver: deliver).end(.notStarted(error))
            return id
        }
        perform { engine in
            let reporter = TransferReporter(of: request, startedAt: startedAt, deliver: deliver)
            engine.add(id, request, pool, connectionsPerHost, reporter)
        }
        return id
    }

    /// Cancels a transfer, which ends with code 42. Has no effect after the end.
    package nonisolated func cancel(_ id: TransferID) {
        perform { $0.end(id, CURLE_ABORTED_BY_CALLBACK, "cancelled") }
    }

    /// Pauses directions of a transfer, in addition to those that are already paused. May be called in any stage of the
    /// transfer.
    ///
    /// The name lookup and the connection attempts continue, the head of the request is sent, and the head of the
    /// response may arrive. Once the engine has handled the call, no body data is read or delivered.
    ///
    /// libcurl keeps the data that it has already received, up to 16 KiB. With HTTP/2 it may receive up to 32 MiB more,
    /// the size of its receive window. Everything else waits in the kernel and on the server.
    ///
    /// The idle timeout restarts with ``resume(_:)``. Other timeouts keep running. While receiving is paused, the
    /// engine does not notice that a server has gone away.
    package nonisolated func pause(_ id: TransferID, _ directions: TransferPause) {
        // A caller within `deliver` must get no more of the body in this turn.
        if directions.contains(.receiving), loop.isCurrent { assumeIsolated { $0.stopReceiving(id) } }
        perform { $0.setPause(of: id, directions) }
    }

    /// Resumes all directions of a transfer that ``pause(_:_:)`` has paused.
    package nonisolated func resume(_ id: TransferID) {
        perform { $0.setPause(of: id, nil) }
    }

    /// Makes later transfers of the common pool use new connections; see ``TransferPool/renewConnections()``.
    package nonisolated func renewConnections() {
        renewConnections(of: .common)
    }

    nonisolated func renewConnections(of pool: TransferPool.ID) {
        resolver.renew()
        preferredAddresses.removeAll()
        dropConnections(of: pool)
    }

    nonisolated func dropConnections(of pool: TransferPool.ID) {
        perform { $0.retireMultis(of: pool) }
    }

    /// Closes a released pool's connections as soon as no transfer uses them.
    nonisolated func forget(_ pool: TransferPool.ID) {
        perform { $0.forgetMultis(of: pool) }
    }

    nonisolated func restartStalled(to host: String, port: Int, of pool: TransferPool.ID) {
        perform { $0.restartStalledTransfers(to: host, port: port, of: pool) }
    }

    nonisolated func endUnanswered(by peer: ConnectionPeer, of pool: TransferPool.ID) {
        perform { $0.endUnansweredTransfers(by: peer, of: pool) }
    }
}

// The pauses of transfers.

extension TransferEngine {
    /// Changes the pause of a transfer in any stage.
    ///
    /// - Parameter directions: The directions to pause in addition; `nil` to resume all.
    func setPause(of id: TransferID, _ directions: TransferPause?) {
        switch transfers[id]?.stage {
        case .waiting, .connecting, .deciding: transfers[id]?.setPause(directions)
        case .running:
            changePause(of: id) { transfer in directions.map(transfer.pause) ?? transfer.resume() }
        case nil: break
        }
    }

    func stopReceiving(_ id: TransferID) {
        runningMulti(of: id).flatMap { multis[$0] }?.stopReceiving(id)
    }

    func changePause(of id: TransferID, _ change: (Transfer) -> CURLcode) {
        guard let multi = runningMulti(of: id) else { return }
        advance(multi) { $0.changePause(of: id, change) }
    }

    private func runningMulti(of id: TransferID) -> MultiTable.ID? {
        guard let transfer = transfers[id], transfer.stage == .running else { return nil }
        return transfer.multi
    }
}
