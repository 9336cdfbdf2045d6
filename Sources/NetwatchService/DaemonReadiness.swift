internal import ClientCore
internal import Foundation
internal import Logging
internal import NetworkReachability
internal import OfflineQueue

/// What the service reports to the service manager and to the log.
extension NetwatchDaemon {
    /// The minimum time between two status lines.
    private static let statusInterval = Duration.seconds(5)

    /// Tells the service manager and the log that the service is ready. Returns the status line of this moment.
    func announceReady(_ state: ServiceState) async -> String {
        if let failure = state.monitor.failure {
            logger.warning(
                "netlink is unavailable, so reachability is unknown",
                metadata: ["error": "\(failure)"]
            )
        }
        for shortcoming in SessionManager.transportShortcomings {
            logger.warning("\(shortcoming)")
        }
        let status = await state.statusLine().text
        state.readiness.phase = .ready
        logFailure(notifier.notify(.ready, .status(status)))
        let counts = await counts(of: state.queue, [.pending, .inflight, .held, .dead])
        let paths: Logger.Metadata = [
            "socket": "\(configuration.socket)", "state": "\(configuration.stateDirectory)",
        ]
        logger.info("ready", metadata: paths.merging(counts) { $1 })
        return status
    }

    /// Tells the service manager's watchdog three times per interval that all parts of the service make progress.
    func reportProgress(of state: ServiceState) async {
        let environment = ProcessInfo.processInfo.environment
        guard let interval = SystemdNotifier.watchdogInterval(environment) else { return }
        let heartbeat = Heartbeat(
            interval: interval / 3,
            parts: state.progressChecks(),
            report: { logFailure(notifier.notify(.watchdog)) }
        )
        await heartbeat.run()
    }

    /// Sends the status line to the service manager when it has changed, but at most once per interval.
    ///
    /// - Parameter sent: The line that was sent last.
    func reportStatus(of state: ServiceState, after sent: String) async {
        guard notifier.hasManager else { return }
        var sent = sent
        while (try? await Task.sleep(for: Self.statusInterval)) != nil {
            let line = await state.statusLine().text
            guard line != sent else { continue }
            logFailure(notifier.notify(.status(line)))
            sent = line
        }
    }

    /// Logs whether stored requests are encrypted. A missing key was already logged.
    func logEncryption(of queue: OfflineQueue) async {
        guard let uses = try? await queue.statistics().encryption else { return }
        guard let key = uses.first(where: \.isCurrent)?.keyID else {
            if uses.isEmpty { logger.info("stored requests are not encrypted") }
            return
        }
        let others = uses.reduce(0) { $0 + ($1.isAvailable && !$1.isCurrent ? $1.requests : 0) }
        let rest = others == 0 ? "" : "; requests that are not converted to this key yet: \(others)"
        logger.info("stored requests are encrypted with the key `\(key)`\(rest)")
    }

    /// Logs the beginning of a stop, with the number of requests that wait and that are in flight.
    func logStop(of queue: OfflineQueue) async {
        let counts = await counts(of: queue, [.pending, .inflight, .held])
        logger.info("stopping", metadata: counts)
    }

    /// Returns the numbers of requests in some states for a log line; nothing if the store cannot be read.
    private func counts(of queue: OfflineQueue, _ states: [QueuedRequest.State]) async -> Logger.Metadata {
        guard let counts = try? await queue.counts else { return [:] }
        let values = states.map { ($0.rawValue, Logger.MetadataValue.stringConvertible(counts[$0])) }
        return Dictionary(uniqueKeysWithValues: values)
    }
}

extension ServiceState {
    /// Functions that return when the queue and its store, the path monitor, the host monitor and the thread of the
    /// transfers have responded.
    ///
    /// - Parameter transfers: Returns when the thread of the transfers has responded. Default: waits for the thread that
    ///   all sessions share.
    func progressChecks(
        transfers: @escaping @Sendable () async -> Void = { await SessionManager.awaitTransportTurn() }
    ) -> [@Sendable () async -> Void] {
        [
            // An error is progress, too. The service ends by itself after errors that last.
            { _ = try? await queue.counts },
            { _ = await monitor.statuses(of: .general).first { _ in true } },
            { _ = await hosts.monitor.snapshots },
            transfers,
        ]
    }
}
