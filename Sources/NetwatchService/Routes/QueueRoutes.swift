internal import NIOHTTP1
internal import NetwatchEventLoop
package import OfflineQueue

/// The routes of the control API that use the queue. Each group is in a separate file.
package struct QueueRoutes: Sendable {
    let queue: OfflineQueue
    /// Whether the queue was started. If not, nothing is sent, and routes that need the running service throw
    /// `not_running`.
    let isRunning: Bool
    let access: AccessRules
    let defaults: RequestDefaults
    /// Limits how many responses of about 1 MiB are built at once. Building one takes several times its size in memory.
    /// The users who wait for one take turns.
    let largeResponses = AsyncSemaphore(permits: 2)
    /// Limits how many verifications run at once. Each one takes a database connection and a thread.
    let verifications = AsyncSemaphore(permits: 1)
    /// Limits how many quick checks run at once, separately, because a verification may take long.
    let quickChecks = AsyncSemaphore(permits: 1)
    /// Keeps events for clients that reconnect.
    let eventRetention = EventRetention()

    /// - Parameters:
    ///   - access: Determines the quota of each user without full access. An event stream ends when the access of its
    ///     caller changes.
    ///   - defaults: The options of submitted requests that do not have their own.
    package init(
        queue: OfflineQueue,
        isRunning: Bool,
        access: AccessRules = AccessRules(),
        defaults: RequestDefaults = RequestDefaults()
    ) {
        self.queue = queue
        self.isRunning = isRunning
        self.access = access
        self.defaults = defaults
    }

    /// The quota of each user without full access.
    var quota: UserQuota { access.quota }

    package var routes: [ControlRouter.Route] {
        sendRoutes + bodyRoutes + requestRoutes + editRoutes + queueRoutes + archiveRoutes + nameRoutes
            + eventRoutes
    }

    package var router: ControlRouter { ControlRouter(routes) }

    /// Creates a route whose handler may throw. Errors become problem responses.
    ///
    /// - Parameters:
    ///   - access: The least access that a caller must have.
    ///   - query: The accepted names of its query.
    ///   - lists: The accepted names that may be repeated.
    ///   - classify: Returns the class in which a complete request is served.
    func route(
        _ method: HTTPMethod,
        _ path: String,
        access: Access,
        query: [String] = [],
        lists: [String] = [],
        classify: @escaping ControlRouter.Classifier = { _ in .call },
        _ handler: @escaping @Sendable (ControlRequest) async throws -> ControlResponse
    ) -> ControlRouter.Route {
        ControlRouter.Route(
            method,
            path,
            access: access,
            query: query,
            lists: lists,
            classify: classify,
            throwing: handler
        )
    }

    func requireRunning() throws(Problem) {
        guard !isRunning else { return }
        throw Problem(
            .serviceUnavailable,
            code: "not_running",
            detail: "only a running service can do this, and none uses this queue"
        )
    }

    /// Returns the id in the path. The queue may have no request with this id.
    func id(in request: ControlRequest) -> String { request.parameters["id"] ?? "" }
}

/// The options of submitted requests that do not have their own, which a reload replaces.
package final class RequestDefaults: Sendable {
    private let values: Lock<EnqueueOptions>

    /// - Parameter options: The time to live, the timeouts and the durability. Default: those of `EnqueueOptions`.
    package init(_ options: EnqueueOptions = EnqueueOptions()) {
        values = Lock(options)
    }

    var options: EnqueueOptions { values.withLock { $0 } }

    /// Replaces the options. They apply to requests that are submitted later.
    package func replace(_ options: EnqueueOptions) {
        values.withLock { $0 = options }
    }
}

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
        self.init(id: request.id, state: request.state, host: origin?.host ?? "")
    }
}

extension ControlMessage.Listed {
    init(_ request: QueuedRequest, for caller: Caller) {
        self =
            caller.owns(request.submitter) ? .whole(request) : .part(ControlMessage.Redacted(request))
    }
}

extension ControlMessage.Shown {
    init(_ details: RequestDetails, for caller: Caller) {
        self =
            caller.owns(details.summary.submitter)
            ? .whole(details)
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
