internal import Logging
internal import OfflineQueue

/// Reading the configuration again while the service runs.
extension NetwatchDaemon {
    /// The parts of the service that a reload changes.
    struct Reloadable {
        let hosts: HostMonitor
        let history: HostHistory?
        let hooks: HookReporter
        let server: ControlServer
        let webServer: ControlServer?
        let access: AccessRules
        let queue: OfflineQueue
        let defaults: RequestDefaults
        let pusher: MetricsPusher
    }

    func reload(_ parts: Reloadable) async -> ConfigurationReloads.Outcome {
        logFailure(notifier.notify(.reloading))
        defer { logFailure(notifier.notify(.ready)) }
        do {
            let new = try await inUse.read()
            let outcome = try await apply(new, to: parts)
            await keep(new.values)
            return outcome
        } catch {
            let faults = (error as? InvalidConfiguration)?.problems.map { "\($0)" } ?? ["\(error)"]
            for fault in faults { logger.error("\(fault)") }
            logger.error("the configuration files were not applied; the service keeps the old values")
            return .refused(faults)
        }
    }

    private func apply(
        _ new: ServiceConfiguration,
        to parts: Reloadable
    ) async throws(ControlSocketError) -> ConfigurationReloads.Outcome {
        // Only this can fail, so it is the first change.
        try parts.server.admit(new.access.socketPermissions, userConnections: new.userConnections)
        parts.access.replace(policy: new.access, quota: new.quota)
        await parts.queue.use(new.queue)
        for server in [parts.server, parts.webServer] { server?.use(stopGrace: new.stopGrace) }
        parts.defaults.replace(new.requestDefaults)
        parts.history?.use(retention: new.historyRetention)
        threshold.level = new.logLevel
        await parts.pusher.use(new.metricsPush)
        await parts.hooks.use(new.hooks)
        await parts.hosts.update(new.hosts)
        let keys = inUse.apply(new.values)
        logger.notice("the configuration was read again", metadata: ["hosts": "\(new.hosts.count)"])
        if !keys.isEmpty {
            let list = keys.map { "`\($0)`" }.joined(separator: ", ")
            logger.warning("these settings change only when the service is restarted: \(list)")
        }
        return .applied(hosts: new.hosts.count, restartKeys: keys, replacedKeys: replacedKeys(of: new.values))
    }

    /// Returns the keys that environment variables replace and whose values in files have changed since the start. Logs
    /// a warning about them.
    private func replacedKeys(of new: ConfigurationValues) -> [String] {
        let old = configuration.values.replaced
        let replaced = SettingTable.settings.filter { setting in
            new.replaced[setting.path].map { $0 != old[setting.path] } ?? false
        }
        if !replaced.isEmpty {
            let list = replaced.map { "`\($0.path)` (`\($0.variable)`)" }.joined(separator: ", ")
            logger.warning(
                "these settings of files have no effect, because environment variables replace them: \(list)"
            )
        }
        return replaced.map(\.path)
    }
}
