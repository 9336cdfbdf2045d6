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

extension Problem {
    init(_ error: QueueError) {
        self.init(
            Self.status(of: error.code),
            code: error.code.rawValue,
            detail: error.message,
            offset: error.offset
        )
    }

    private static func status(of code: QueueError.Code) -> HTTPResponseStatus {
        switch code {
        case .invalidURL, .invalidMethod, .invalidHeader, .secretHeader, .invalidOption, .unknownDependency,
            .cyclicDependency, .invalidImport, .bodyFileUnusable, .bodyUnavailable:
            .badRequest
        case .unknownRequest, .unknownLane, .unknownStagedBody: .notFound
        case .wrongOffset, .dead, .cancelled, .leftToQueue: .conflict
        case .idConflict: .unprocessableEntity
        case .notSubmitter: .forbidden
        case .quotaExceeded: .tooManyRequests
        case .bodyTooLarge: .payloadTooLarge
        // RFC 4918 §11.5: the request is valid, but the queue or its disk has no space left.
        case .queueFull, .storeFailed, .insufficientSpace, .spoolFailed: .insufficientStorage
        case .invalidConfiguration, .alreadyOwned, .directoryUnusable, .storeUnusable, .storeUnavailable,
            .storeReplaced, .tooManyStagedBodies, .stopped, .encryptionKeyUnusable, .encryptionKeyMissing:
            .serviceUnavailable
        }
    }

    static func unknownRequest(_ id: String) -> Problem {
        Problem(
            .notFound,
            code: QueueError.Code.unknownRequest.rawValue,
            detail: "no request has the id `\(id.prefix(80))`"
        )
    }

    static func malformedBody(_ detail: String) -> Problem {
        Problem(.badRequest, code: "malformed_body", detail: detail)
    }

    /// Creates the error for an unknown member of the body or an unknown name in the query.
    static func unknownName(_ name: String, code: String, accepted: [String]) -> Problem {
        let list =
            accepted.isEmpty ? "no name is accepted" : "accepted: " + accepted.joined(separator: ", ")
        return Problem(
            .badRequest,
            code: code,
            detail: "`\(name.prefix(80))` is not a known name; \(list)"
        )
    }

    /// Returns the host of a filter as the queue stores it.
    ///
    /// - Throws: ``Problem`` with `invalid_host`, because a filter with an invalid host would silently match no
    ///   request.
    static func host(_ text: String) throws(Problem) -> String {
        if let host = Origin.host(named: text) { return host }
        throw .malformedQuery("host", text, accepted: Origin.acceptedHosts(insteadOf: text))
    }

    /// Returns the tag of a filter.
    ///
    /// - Throws: ``Problem`` with `invalid_tag` for a text that no request can have as its tag.
    static func tag(_ text: String) throws(Problem) -> String {
        guard RequestChecks.isPrintable(text) else {
            throw .malformedQuery("tag", text, accepted: "1 to 255 bytes of printable ASCII")
        }
        return text
    }

    /// Creates the error for an invalid value in the query.
    static func malformedQuery(_ name: String, _ value: String, accepted: String) -> Problem {
        Problem(
            .badRequest,
            code: "invalid_\(name)",
            detail: "`\(name)` is `\(value.prefix(80))`; it must be \(accepted)"
        )
    }
}
