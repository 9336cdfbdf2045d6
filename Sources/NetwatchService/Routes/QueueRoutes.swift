internal import NIOHTTP1
package import OfflineQueue

/// The routes of the control API that reach the queue.
///
/// Each group of them stands in a file of its own.
package struct QueueRoutes: Sendable {
    let queue: OfflineQueue
    /// Whether the queue was started: without that nothing is sent, and nobody may think so.
    let isRunning: Bool
    /// Responses of about 1 MiB take several times that while they are made.
    let largeResponses = ConcurrencyLimit(2)
    /// Looking through the store takes a connection to the database and a thread.
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

    /// A route whose errors become problems.
    ///
    /// - Parameters:
    ///   - query: The names that its query may have.
    ///   - lists: Those of them that may come more than once.
    ///   - classify: The class of a request, unless its body makes it an upload.
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
            detail: "nothing is sent while the service is not running"
        )
    }

    /// The id in a path. It may name no request.
    func id(in request: ControlRequest) -> String { request.parameters["id"] ?? "" }
}
