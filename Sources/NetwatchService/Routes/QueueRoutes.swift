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
