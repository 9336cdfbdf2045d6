internal import NIOHTTP1
internal import NetwatchEventLoop
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
        let selection = try selection(in: request)
        try requireRunning()
        let opened = try await queue.flush(selection)
        var flushed = RequestFilter(
            states: [.pending, .inflight],
            host: selection.host,
            lane: selection.label
        )
        flushed.submitter = selection.submitter.map(SelectedSubmitter.user)
        // The dry run of an edit counts requests and changes nothing.
        let count = try await queue.edit(.hold, matching: flushed, isDryRun: true).done
        let pauses = try await queue.pauses(in: selection)
        let message = ControlMessage.Flushed(
            requests: count,
            openedLanes: opened,
            queuePaused: pauses.isQueuePaused,
            pausedLanes: pauses.lanes
        )
        return .json(message, encoder: ControlMessage.encoder)
    }

    /// Returns the lanes that a message selects; all lanes without a message.
    private func selection(in request: ControlRequest) throws(Problem) -> LaneSelection {
        guard let lanes = try request.optionalMessage(LaneSelection.self) else { return .all }
        return LaneSelection(
            host: try lanes.host.map(Problem.host),
            label: lanes.label,
            submitter: lanes.submitter
        )
    }

    private func setPaused(_ isPaused: Bool, _ request: ControlRequest) async throws -> ControlResponse {
        let selection = try selection(in: request)
        let isWhole = selection == .all
        let before = try await queue.pauses(in: selection)
        let count = try await queue.setPaused(isPaused, selection)
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
        if !caller.readsLanes {
            (statistics.pausedLanes, statistics.closedLanes, statistics.completions) = ([], [], [])
        }
        return .json(ControlMessage.Versioned(statistics), encoder: ControlMessage.encoder)
    }
}

/// The body of `POST /v1/queue/flush`, `pause` and `resume`. Without members, `flush` and `pause` apply to the whole queue,
/// and `resume` ends every pause.
extension LaneSelection: NamedMembers {
    static let memberNames = ["host", "lane", "submitter"]

    func object(named name: String) -> Any? { nil }
}

/// Routes for the state of the service's resolver.
extension QueueRoutes {
    var nameRoutes: [ControlRouter.Route] {
        [
            route(.GET, "/v1/names", access: .read) { _ in
                try requireRunning()
                let names = ControlMessage.Names(NameResolver.shared.snapshot())
                return .json(names, encoder: ControlMessage.encoder)
            }
        ]
    }
}
