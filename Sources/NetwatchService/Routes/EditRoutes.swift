internal import NIOHTTP1
internal import OfflineQueue

/// What may be asked of requests, one by one or many at once.
extension QueueRoutes {
    var editRoutes: [ControlRouter.Route] {
        let actions: [EditAction] = [.retry, .hold, .release]
        return actions.map { action in
            route(.POST, "/v1/requests/{id}/\(action)") { try await editOne(action, $0) }
        }
            + (actions + [.drop]).map { action in
                route(.POST, "/v1/queue/\(action)") { try await editMany(action, $0) }
            } + [
                route(.DELETE, "/v1/requests/{id}") { try await editOne(.drop, $0) }
            ]
    }

    private enum EditAction {
        case retry, hold, release, drop
    }

    /// The form for one has options but no ids.
    private struct RetryOptions: Decodable {
        var newKey: Bool?
    }

    private func editOne(_ action: EditAction, _ request: ControlRequest) async throws -> ControlResponse {
        let id = try await id(in: request)
        let options = try request.optionalMessage(RetryOptions.self)
        let result = try await perform(action, [id], newKey: options?.newKey ?? false)[0]
        if case .refused(let state) = result { throw Self.refusal(action, id, state) }
        return .json(Self.message(action, id, result), encoder: ControlMessage.encoder)
    }

    private func editMany(_ action: EditAction, _ request: ControlRequest) async throws -> ControlResponse {
        let message = try request.message(ControlMessage.Edit.self)
        guard message.ids.count <= ControlMessage.mostIDs else {
            throw Problem.malformedBody(
                "`ids` has \(message.ids.count) ids, and may have \(ControlMessage.mostIDs)"
            )
        }
        var (results, whole): ([ControlMessage.Edited.Result?], [String]) = ([], [])
        for prefix in message.ids {
            do {
                whole.append(try await queue.id(beginningWith: prefix))
                results.append(nil)
            } catch let error as QueueError where error.code == .unknownRequest || error.code == .ambiguousID
            {
                results.append(Self.message(prefix, error))
            }
        }
        // All of them with one commit.
        let done = try await perform(action, whole, newKey: message.newKey ?? false)
        var messages = zip(whole, done).map { Self.message(action, $0, $1) }.makeIterator()
        let edited = ControlMessage.Edited(results: results.compactMap { $0 ?? messages.next() })
        return .json(edited, encoder: ControlMessage.encoder)
    }

    private func perform(_ action: EditAction, _ ids: [String], newKey: Bool) async throws -> [EditResult] {
        guard action == .retry || !newKey else {
            throw Problem.malformedBody("`new_key` is for retry; \(action) changes no key")
        }
        return switch action {
        case .retry: try await queue.retry(ids, newKey: newKey)
        case .hold: try await queue.hold(ids)
        case .release: try await queue.release(ids)
        case .drop: try await queue.cancel(ids)
        }
    }

    private static func refusal(_ action: EditAction, _ id: String, _ state: QueuedRequest.State) -> Problem {
        Problem(.conflict, code: "refused", detail: refusalWords(action, id, state))
    }

    private static func refusalWords(_ action: EditAction, _ id: String, _ state: QueuedRequest.State)
        -> String
    {
        "`\(id)` is \(state.rawValue), and \(action) does not apply to that"
    }

    // MARK: Messages

    private static func message(_ prefix: String, _ error: QueueError) -> ControlMessage.Edited.Result {
        ControlMessage.Edited.Result(
            id: prefix,
            done: false,
            code: error.code.rawValue,
            detail: error.message
        )
    }

    private static func message(
        _ action: EditAction,
        _ id: String,
        _ result: EditResult
    ) -> ControlMessage.Edited.Result {
        switch result {
        case .done(let state):
            ControlMessage.Edited.Result(id: id, done: true, state: state.rawValue)
        case .refused(let state):
            ControlMessage.Edited.Result(
                id: id,
                done: false,
                state: state.rawValue,
                code: "refused",
                detail: refusalWords(action, id, state)
            )
        case .unknown:
            // It was forgotten since its id was looked up.
            ControlMessage.Edited.Result(
                id: id,
                done: false,
                code: QueueError.Code.unknownRequest.rawValue,
                detail: "the request `\(id)` has just been forgotten"
            )
        }
    }
}
