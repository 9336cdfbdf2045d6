internal import ClientCore
internal import NetwatchEventLoop

/// The import of requests.
extension OfflineQueue {
    /// Imports the requests of an export from a file.
    ///
    /// The whole file is checked before anything is changed. Then the requests are added in the order of the file, with
    /// their ids, keys and states. A request that the queue already knows is skipped, so an interrupted import can be
    /// repeated. If its id belongs to another request, it is not imported either: ``ImportResult/conflicts`` names it.
    ///
    /// A request is held if it depends on another one that is neither in the export nor in the queue, or on one that
    /// waits for it in the queue. If requests of the export wait for each other, the export is refused. The import
    /// obeys ``QueueLimits``, except ``QueueLimits/laneShare``. If uploads use the space that the import needs, stalled
    /// uploads are removed as ``appendToBody(_:_:at:for:)`` describes.
    ///
    /// The imported requests have no submitter, because the user ids of another machine may belong to other users here.
    ///
    /// - Parameter path: The path of a regular file, which is read with the permissions of this process.
    /// - Throws: ``QueueError``: `invalidImport` with the line number, `queueFull`, `bodyFileUnusable`, `storeFailed`,
    ///   `spoolFailed`, `insufficientSpace`. If it throws `invalidImport` or `queueFull`, nothing was changed, unless
    ///   the file was changed or the queue became full during the import.
    public nonisolated func importRequests(from path: String) async throws -> ImportResult {
        try await importRequests(from: path, as: .user(nil))
    }

    /// Imports the requests of an export from a file, like ``importRequests(from:)``.
    ///
    /// - Parameter submitters: Who becomes the submitter of the requests.
    package nonisolated func importRequests(
        from path: String,
        as submitters: ImportedSubmitters
    ) async throws -> ImportResult {
        try await importRequests(as: submitters) { files throws(QueueError) in
            do throws(SystemError) { return try files.openExternal(path) } catch {
                throw .unusable(path, error)
            }
        }
    }

    /// Imports the requests of an export that was uploaded with ``appendToBody(_:_:at:for:)``.
    ///
    /// The import works in the same way as ``importRequests(from:)``. The upload is removed, even if the import fails.
    /// When the import begins, the bytes of the upload stop counting against ``QueueLimits/bytes``.
    ///
    /// - Parameters:
    ///   - id: The id of the upload.
    ///   - size: The number of bytes that were uploaded.
    /// - Throws: The errors of ``importRequests(from:)``, and ``QueueError`` with `unknownStagedBody` or `wrongOffset`.
    ///   After `wrongOffset` the upload is kept.
    public nonisolated func importStaged(_ id: String, size: Int64) async throws -> ImportResult {
        try await importStaged(id, size: size, as: .user(nil))
    }

    /// Imports the requests of an uploaded export, like ``importStaged(_:size:)``.
    ///
    /// - Parameter submitters: Who becomes the submitter of the requests.
    package nonisolated func importStaged(
        _ id: String,
        size: Int64,
        as submitters: ImportedSubmitters
    ) async throws -> ImportResult {
        let body = try await staged.finish(id, size: size).body
        do {
            let file = try await opened(body)
            let result = try await importRequests(as: submitters) { _ throws(QueueError) in file }
            await store.spool.remove([body.name])
            return result
        } catch {
            await store.spool.remove([body.name])
            throw error
        }
    }

    private nonisolated func opened(_ upload: SpooledBody) async throws(QueueError) -> any SpoolFile {
        do throws(SpooledBodyFault) { return try await store.spool.openUnverified(upload) } catch {
            throw QueueError(.spoolFailed, "the upload cannot be read: \(error)")
        }
    }

    private nonisolated func importRequests(
        as submitters: ImportedSubmitters,
        _ open: @escaping @Sendable (any SpoolFiles) throws(QueueError) -> any SpoolFile
    ) async throws -> ImportResult {
        let file = try await store.spool.openFile(open)
        let importer = Importer(store: store, file: file, submitters: submitters) {
            try await self.removeStalledBodies(toFit: $0)
        }
        do {
            let result = try await importer.run()
            await settled()
            return result
        } catch {
            await settled(error)
            throw error
        }
    }

    /// Wakes callers that wait for requests, because the import may have replaced these requests. Also wakes the
    /// sweeper, because imported requests may expire soon.
    private func settled(_ error: (any Error)? = nil) {
        if let error { failed(error) }
        recheckCompletions()
        sweeper.shortenPause(to: .zero)
    }
}

/// The settings of the parts of a queue.
extension OfflineQueue {
    /// Replaces the settings of an open queue that can change: its limits, its retention, the backoff, the numbers of
    /// requests in flight, ``Configuration/reconnectSpread``, the rates, the weights, the versions of HTTP, the rules for
    /// statuses, ``Configuration/credentialTimeout``, ``Configuration/stopTimeout`` and ``Configuration/scanInterval``.
    /// The other settings are ignored.
    ///
    /// Stored requests and requests in flight remain, even if they exceed the new limits. New requests start when fewer
    /// than the new numbers are in flight. The backoff and the spread apply to the next delay. A rate permits as many
    /// requests at once as before, but at most its new burst.
    ///
    /// - Precondition: The settings are in the ranges that ``Configuration`` and ``QueueLimits`` state.
    package func use(_ new: Configuration) async {
        configuration.replaceSettings(with: new.withOriginHosts)
        handle(.settings(Scheduler.Settings(configuration, checksPortals: portals != nil)))
        await store.use(StoreSettings(configuration))
        capacityWaiters.changed()
        sweeper.shortenPause(to: .zero)
        scanner.use(interval: configuration.scanInterval)
        await credentials.use(
            timeout: configuration.credentialTimeout,
            maximumWait: configuration.credentialWait
        )
    }
}

extension OfflineQueue.Configuration {
    /// Returns the version of HTTP that is configured for the origin of a URL; `nil` if there is none.
    func httpVersion(of url: String) -> HTTPVersion? {
        guard !httpVersions.isEmpty, let origin = try? Origin(url: url) else { return nil }
        return httpVersions[origin]
    }

    /// Returns the rules for the statuses of a response, those that take precedence first: of the request, its lane, its
    /// host, and the queue.
    ///
    /// - Parameter label: The label of the lane; `nil` if it is not known.
    func rules(besides request: StatusRules, for origin: Origin, lane label: String?) -> [StatusRules] {
        let rules = [
            request, label.flatMap { laneStatusRules[$0] }, hostStatusRules[origin.host], statusRules,
        ]
        return rules.compactMap { $0?.isEmpty == false ? $0 : nil }
    }

    /// The configuration with the hosts of ``hostStatusRules`` in the form of `Origin.host`.
    var withOriginHosts: OfflineQueue.Configuration {
        var configuration = self
        let hosts = hostStatusRules.map { (Origin.host(named: $0.key) ?? $0.key, $0.value) }
        // The check of the configuration has refused equal hosts.
        configuration.hostStatusRules = Dictionary(hosts) { first, _ in first }
        return configuration
    }

    /// Replaces the settings that can change while the queue is open.
    fileprivate mutating func replaceSettings(with new: OfflineQueue.Configuration) {
        (limits, retention) = (new.limits, new.retention)
        (backoffBase, backoffCap) = (new.backoffBase, new.backoffCap)
        (inflightPerLane, inflightPerOrigin) = (new.inflightPerLane, new.inflightPerOrigin)
        inflight = new.inflight
        reconnectSpread = new.reconnectSpread
        rates = new.rates
        (hostWeights, laneWeights) = (new.hostWeights, new.laneWeights)
        httpVersions = new.httpVersions
        (statusRules, hostStatusRules) = (new.statusRules, new.hostStatusRules)
        laneStatusRules = new.laneStatusRules
        (credentialTimeout, stopTimeout) = (new.credentialTimeout, new.stopTimeout)
        scanInterval = new.scanInterval
    }
}

extension StoreSettings {
    package init(_ configuration: OfflineQueue.Configuration) {
        self.init()
        limits = configuration.limits
        longestDelay = configuration.backoffCap
        retention = configuration.retention
        encryptionKeyFile = configuration.encryptionKeyFile
    }
}

extension Scheduler.Settings {
    init(_ configuration: OfflineQueue.Configuration, checksPortals: Bool) {
        self.init()
        backoff = Backoff(base: configuration.backoffBase, cap: configuration.backoffCap)
        inflightPerLane = configuration.inflightPerLane
        inflightPerOrigin = configuration.inflightPerOrigin
        inflight = configuration.inflight
        reconnectSpread = configuration.reconnectSpread
        retryRate = configuration.retryRate
        confirmsRefusals = configuration.confirmsRefusals
        authRetries = configuration.authRetries
        gateTimeout = configuration.gateTimeout
        lossGrace = configuration.lossGrace
        rates = configuration.rates
        let weights = configuration.hostWeights.map { (Origin.host(named: $0.key) ?? $0.key, $0.value) }
        // The check of the configuration has refused equal hosts.
        hostWeights = Dictionary(weights) { first, _ in first }
        laneWeights = configuration.laneWeights
        self.checksPortals = checksPortals
    }
}
