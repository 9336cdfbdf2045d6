internal import Dispatch
internal import Logging
internal import NetwatchEventLoop
internal import OfflineQueue

/// The last good configuration.
extension NetwatchDaemon {
    /// Logs why the service uses its last good configuration, if it does.
    func logFallback() {
        guard let fallback = inUse.fallback else { return }
        let (kept, reason) = (fallback.kept.rfc3339, fallback.summary)
        logger.error(
            "the service uses its last good configuration of \(kept), because it cannot use its files: \(reason)"
        )
    }

    /// Stores the values with which the service runs as the last good configuration.
    func keep(_ values: ConfigurationValues) async {
        let file = LastGoodConfiguration(stateDirectory: configuration.stateDirectory)
        do throws(SystemError) {
            let damage = try await DispatchQueue.global().run { () throws(SystemError) in
                try file.keep(values)
            }
            inUse.keepingFailure = nil
            if let damage { logger.warning("\(damage); the file was moved to `\(file.path).damaged`") }
        } catch {
            inUse.keepingFailure = "\(error)"
            logger.warning("the configuration could not be stored as the last good one: \(error)")
        }
    }
}
