internal import NIOHTTP1
internal import OfflineQueue

extension ControlRouter.Route {
    /// Creates a route whose handler may throw. Errors become problem responses.
    ///
    /// - Parameters:
    ///   - access: The least access that a caller must have.
    ///   - query: The accepted names of its query. Default: none.
    ///   - lists: The accepted names that may be repeated. Default: none.
    ///   - classify: Returns the class in which a complete request is served.
    init(
        _ method: HTTPMethod,
        _ path: String,
        access: Access,
        query: [String] = [],
        lists: [String] = [],
        classify: @escaping ControlRouter.Classifier = { _ in .call },
        throwing handler: @escaping @Sendable (ControlRequest) async throws -> ControlResponse
    ) {
        self.init(method, path, access: access, classify: classify) { request in
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
        self.query = query
        self.lists = lists
    }
}
