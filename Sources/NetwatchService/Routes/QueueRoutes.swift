internal import NIOHTTP1
package import OfflineQueue

/// The routes of the control API that use the queue. Each group is in a separate file.
package struct QueueRoutes: Sendable {
    let queue: OfflineQueue
    /// Whether the queue was started. Otherwise nothing is sent, and routes that need sending fail with `not_running`.
    let isRunning: Bool
    /// Limits responses of about 1 MiB, because building one needs several times its size in memory.
    let largeResponses = ConcurrencyLimit(2)
    /// Limits verifications, because each one takes a database connection and a thread.
    let verifications = ConcurrencyLimit(1)

    package init(queue: OfflineQueue, isRunning: Bool) {
        self.queue = queue
        self.isRunning = isRunning
    }

    package var router: ControlRouter {
        ControlRouter(
            sendRoutes + bodyRoutes + requestRoutes + editRoutes + queueRoutes + archiveRoutes + nameRoutes
        )
    }

    /// Creates a route that converts errors to problems.
    ///
    /// - Parameters:
    ///   - query: The accepted names of its query.
    ///   - lists: The accepted names that may be repeated.
    ///   - classify: Returns the class of a request, unless its body makes it an upload.
    func route(
        _ method: HTTPMethod,
        _ path: String,
        query: [String] = [],
        lists: [String] = [],
        classify: @escaping ControlRouter.Classifier = { _ in .call },
        _ handler: @escaping @Sendable (ControlRequest) async throws -> ControlResponse
    ) -> ControlRouter.Route {
        ControlRouter.Route(method, path, classify: classify) { request in
            do {
                try request.checkQuery(takes: query, lists: lists)
                return try await handler(request)
            } catch let problem as Problem {
                return ControlResponse(problem)
            } catch let error as QueueError {
                return ControlResponse(Problem(error))
            } catch {
                return ControlResponse(
                    Problem(.internalServerError, code: "internal_error", detail: "\(error)")
                )
            }
        }
    }

    func requireRunning() throws(Problem) {
        guard !isRunning else { return }
        throw Problem(
            .serviceUnavailable,
            code: "not_running",
            detail: "the service is not running, so nothing is sent"
        )
    }

    /// Returns the id in the path. A request with this id may not exist.
    func id(in request: ControlRequest) -> String { request.parameters["id"] ?? "" }
}
