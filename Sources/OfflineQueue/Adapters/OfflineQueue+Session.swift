public import ClientCore
public import NetworkReachability

extension OfflineQueue {
    /// Opens the queue's directory. Nothing is sent before ``start()``.
    ///
    /// - Parameters:
    ///   - configuration: The directory and the settings of the queue.
    ///   - session: The session that sends the requests. Default `nil`: a separate session that also uses `monitor`.
    ///   - monitor: Reports when a host becomes reachable. Default `PathMonitor.shared`.
    /// - Throws: ``QueueError``: `invalidConfiguration`, `alreadyOwned` with the owner's process id,
    ///   `directoryUnusable`, `storeUnusable`, `storeUnavailable`, `storeFailed`.
    public init(
        configuration: Configuration,
        session: SessionManager? = nil,
        monitor: PathMonitor = .shared
    ) async throws {
        try await self.init(
            configuration: configuration,
            sender: SessionSender(session: session ?? SessionManager(monitor: monitor)),
            gate: MonitorGate(monitor: monitor)
        )
    }
}
