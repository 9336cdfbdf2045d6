internal import NIOHTTP1
internal import OfflineQueue

/// Routes for the queue as a whole and for whole lanes.
extension QueueRoutes {
    var queueRoutes: [ControlRouter.Route] {
        [
            route(.POST, "/v1/queue/flush", access: .full) { try await flush($0) },
            route(.POST, "/v1/queue/pause", access: .full) { try await setPaused(true, $0) },
            route(.POST, "/v1/queue/resume", access: .full) { try await setPaused(false, $0) },
            route(.GET, "/v1/queue/stats", access: .read) { try await statistics(for: $0.caller) },
        ]
    }

    private func flush(_ request: ControlRequest) async throws -> ControlResponse {
        let lanes = try request.optionalMessage(ControlMessage.Lanes.self)
        let host = try lanes?.host.map(Problem.host)
        try requireRunning()
        let opened = try await queue.flush(host: host, lane: lanes?.lane)
        // The dry run of an edit counts requests and changes nothing.
        let flushed = RequestFilter(states: [.pending, .inflight], host: host, lane: lanes?.lane)
        let count = try await queue.edit(.hold, matching: flushed, isDryRun: true).done
        let pauses = try await queue.pauses(host: host, lane: lanes?.lane)
        let message = ControlMessage.Flushed(
            requests: count,
            openedLanes: opened.map { ControlMessage.Lanes(host: $0.host, lane: $0.label) },
            queuePaused: pauses.isQueuePaused,
            pausedLanes: pauses.lanes.map(ControlMessage.Lanes.init)
        )
        return .json(message, encoder: ControlMessage.encoder)
    }

    private func setPaused(_ isPaused: Bool, _ request: ControlRequest) async throws -> ControlResponse {
        let lanes = try request.optionalMessage(ControlMessage.Lanes.self)
        let host = try lanes?.host.map(Problem.host)
        let isWhole = host == nil && lanes?.lane == nil
        let before = try await queue.pauses(host: host, lane: lanes?.lane)
        let count =
            isPaused
            ? try await queue.pause(host: host, lane: lanes?.lane)
            : try await queue.resume(host: host, lane: lanes?.lane)
        let message = ControlMessage.Paused(
            paused: isPaused,
            lanes: count,
            wasPaused: !before.lanes.isEmpty || (isWhole && before.isQueuePaused),
            queuePaused: isWhole ? isPaused : before.isQueuePaused
        )
        return .json(message, encoder: ControlMessage.encoder)
    }

    private func statistics(for caller: Caller) async throws -> ControlResponse {
        var statistics = try await queue.statistics()
        // Labels and tags are content of requests.
        if caller.access < .full {
            (statistics.pausedLanes, statistics.closedLanes, statistics.completions) = ([], [], [])
        }
        let message = ControlMessage.Statistics(
            counts: statistics.counts.byName,
            requests: statistics.requests,
            bytes: statistics.bytes,
            oldest: statistics.oldest,
            lanes: statistics.lanes,
            paused: statistics.isPaused,
            pausedLanes: statistics.pausedLanes.map(ControlMessage.Lanes.init),
            closedLanes: statistics.closedLanes.map(ControlMessage.ClosedLane.init),
            completions: statistics.completions.map {
                ControlMessage.Completions(tag: $0.tag, requests: $0.count)
            },
            databaseBytes: statistics.databaseBytes,
            freeBytes: statistics.freeBytes,
            stagedBodies: statistics.stagedBodies,
            stagedBytes: statistics.stagedBytes,
            encryption: statistics.encryption.isEmpty
                ? nil : statistics.encryption.map(ControlMessage.KeyUse.init)
        )
        return .json(message, encoder: ControlMessage.encoder)
    }
}

extension ControlMessage.Lanes {
    fileprivate init(_ lane: QueueStatistics.PausedLane) {
        self.init(host: lane.host, lane: lane.label)
    }
}

extension ControlMessage.KeyUse {
    fileprivate init(_ use: QueueStatistics.KeyUse) {
        self.init(
            key: use.keyID,
            requests: use.requests,
            available: use.isAvailable,
            current: use.isCurrent
        )
    }
}

extension ControlMessage.ClosedLane {
    init(_ lane: QueueStatistics.ClosedLane) {
        self.init(
            host: lane.host,
            lane: lane.label,
            origin: lane.origin,
            fifo: lane.isFIFO,
            constraints: lane.constraints == RequestConstraints() ? nil : lane.constraints.description,
            until: lane.closure.until,
            status: lane.closure.status,
            reason: "\(lane.closure)"
        )
    }
}
