internal import NIOHTTP1
internal import OfflineQueue

// What a caller may read and change of the requests of others.

extension Caller {
    /// The caller as the submitter of requests and uploads.
    ///
    /// - Parameter quota: The quota of users without full access.
    func submitter(_ quota: UserQuota) -> Submitter? {
        user.map { Submitter(user: $0, quota: access == .full ? nil : quota) }
    }

    /// The user to whose requests an edit by filter is limited; `nil` for no limitation.
    var onlyUser: UInt32? { access == .full ? nil : user }
}

extension QueueRoutes {
    /// Returns the ids that belong to requests of other users, which the caller may not change.
    func foreign(_ ids: [String], to caller: Caller) async throws -> Set<String> {
        guard caller.access < .full else { return [] }
        return Set(try await queue.submitters(of: ids).filter { !caller.owns($0.value) }.keys)
    }

    /// - Throws: ``Problem`` with `not_submitter` if another user has submitted the request.
    func requireOwnership(of id: String, by caller: Caller) async throws {
        if try await !foreign([id], to: caller).isEmpty { throw Problem.notSubmitter(id) }
    }
}

extension Problem {
    static func notSubmitter(_ id: String) -> Problem {
        Problem(
            .forbidden,
            code: QueueError.Code.notSubmitter.rawValue,
            detail:
                "`\(id.prefix(80))` belongs to another user; only that user, root and the user of the service may "
                + "change it"
        )
    }
}

// MARK: - Redaction

extension ControlMessage.Redacted {
    init(_ request: QueuedRequest) {
        let origin = try? Origin(url: request.url, allowsUserInfo: true)
        self.init(id: request.id, state: request.state.rawValue, host: origin?.host ?? "")
    }
}

extension ControlMessage.Listed {
    init(_ request: QueuedRequest, for caller: Caller) {
        self =
            caller.owns(request.submitter)
            ? .whole(ControlMessage.Entry(request)) : .part(ControlMessage.Redacted(request))
    }
}

extension ControlMessage.Shown {
    init(_ details: RequestDetails, for caller: Caller) {
        self =
            caller.owns(details.summary.submitter)
            ? .whole(ControlMessage.Details(details))
            : .part(ControlMessage.RedactedDetails(request: ControlMessage.Redacted(details.summary)))
    }
}

extension QueueEvent {
    /// The event as the caller may read it: of the requests of others only their ids, states and hosts, and no labels of
    /// lanes.
    func visible(to caller: Caller) -> QueueEvent {
        guard !caller.owns(submitter) else { return self }
        var event = self
        event.lane = nil
        guard requestID != nil else { return event }
        (event.tag, event.holdReason, event.due, event.attempts) = (nil, nil, nil, nil)
        (event.status, event.reason) = (nil, nil)
        return event
    }
}
