internal import NIOHTTP1
internal import OfflineQueue

// What a caller may read and change of the requests of others.

extension Caller {
    /// The caller as the submitter of requests and uploads.
    ///
    /// - Parameter quota: The quota of users without full access.
    func submitter(_ quota: UserQuota) -> Submitter? {
        user.map { Submitter(user: $0, quota: self.quota(quota)) }
    }

    /// The quota of the caller; `nil` with full access.
    ///
    /// - Parameter quota: The quota of users without full access.
    func quota(_ quota: UserQuota) -> UserQuota? { access == .full ? nil : quota }

    /// Whether the caller may read the lanes and the tags of all users: their origins and labels, and how many requests
    /// each of them has. Others read only how many there are.
    var readsLanes: Bool { access == .full }

    /// Returns the user to whose requests a selection is limited; `nil` for no limitation.
    ///
    /// - Parameter submitter: The user whose requests are selected; `nil` for those of all users that the caller may
    ///   read and edit.
    /// - Throws: ``Problem`` with `forbidden` if the caller may not select the requests of this user.
    func selected(_ submitter: UInt32?) throws(Problem) -> UInt32? {
        guard access < .full else { return submitter }
        if let submitter, submitter != user { throw .foreignSubmitter(submitter) }
        return user
    }
}

/// Whose requests some ids name. An unknown id is in neither set: it must not be edited, because another user may submit a
/// request with this id before the edit.
struct Ownership {
    /// The ids that the caller may edit; `nil` for all.
    let own: Set<String>?
    /// The ids of requests of other users.
    let foreign: Set<String>

    func includes(_ id: String) -> Bool { own?.contains(id) ?? true }
}

extension QueueRoutes {
    func ownership(of ids: [String], by caller: Caller) async throws -> Ownership {
        guard caller.access < .full else { return Ownership(own: nil, foreign: []) }
        let submitters = try await queue.submitters(of: ids)
        let own = Set(submitters.filter { caller.owns($0.value) }.keys)
        return Ownership(own: own, foreign: Set(submitters.keys).subtracting(own))
    }

    /// - Throws: ``Problem``: `not_submitter` if another user has submitted the request, or `unknown_id`.
    func requireOwnership(of id: String, by caller: Caller) async throws {
        let ownership = try await ownership(of: [id], by: caller)
        if ownership.foreign.contains(id) { throw Problem.notSubmitter(id) }
        if !ownership.includes(id) { throw Problem.unknownRequest(id) }
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

    static func foreignSubmitter(_ user: UInt32) -> Problem {
        Problem(
            .forbidden,
            code: "forbidden",
            detail:
                "`submitter` is \(user), another user; only root and the user of the service may select the requests of "
                + "another user"
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
    /// The event as the caller may read it: of the requests and lanes of others only ids, states and hosts, and no
    /// labels.
    func visible(to caller: Caller) -> QueueEvent {
        guard !caller.owns(submitter) else { return self }
        var event = self
        (event.lane, event.submitter, event.due, event.status) = (nil, nil, nil, nil)
        guard requestID != nil else { return event }
        (event.tag, event.holdReason, event.attempts, event.reason) = (nil, nil, nil, nil)
        return event
    }
}
