internal import CNetwatchCurl
internal import NetwatchEventLoop

// The calls from any thread.

extension TransferEngine {
    /// Whether the caller runs on the engine's thread.
    package nonisolated var isCurrent: Bool { loop.isCurrent }

    /// Starts a transfer in the common pool; see ``TransferPool/start(_:deliver:)``.
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
        let startedAt = ContinuousClock.now
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

    /// Ends a transfer with code 42. Has no effect after the end.
    package nonisolated func cancel(_ id: TransferID) {
        perform { $0.end(id, CURLE_ABORTED_BY_CALLBACK, "cancelled") }
    }

    /// Pauses directions of a transfer, in addition to those already paused, in any stage.
    ///
    /// The name lookup and connecting continue, the head of the request is sent, and the head of the response may
    /// arrive. Once the engine has handled the call, no body data is read or delivered. libcurl keeps what it had
    /// received (16 KiB, or what 7 KiB decode to), and with HTTP/2 up to the 32 MiB of its receive window. The rest
    /// waits in the kernel and on the server.
    ///
    /// The idle timeout restarts with ``resume(_:)``; other timeouts keep running. While receiving is paused, a server
    /// that has gone away is not noticed.
    package nonisolated func pause(_ id: TransferID, _ directions: TransferPause) {
        // If this is called from `deliver`, the caller gets no more of the body in this turn.
        if directions.contains(.receiving), loop.isCurrent { assumeIsolated { $0.stopReceiving(id) } }
        perform { $0.setPause(of: id, directions) }
    }

    /// Resumes all directions paused by ``pause(_:_:)``.
    package nonisolated func resume(_ id: TransferID) {
        perform { $0.setPause(of: id, nil) }
    }

    /// Renews the connections of the common pool; see ``TransferPool/renewConnections()``.
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

    nonisolated func restartStalled(to host: String, of pool: TransferPool.ID) {
        perform { $0.restartStalledTransfers(to: host, of: pool) }
    }
}
