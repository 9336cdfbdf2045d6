internal import NIOHTTP1
internal import OfflineQueue

/// Routes that edit requests, one at a time or many at once.
extension QueueRoutes {
    var editRoutes: [ControlRouter.Route] {
        EditAction.allCases.flatMap { action in
            [
                action == .cancel
                    ? route(.DELETE, "/v1/requests/{id}", access: .submit) { try await editOne(action, $0) }
                    : route(.POST, "/v1/requests/{id}/\(action)", access: .submit) {
                        try await editOne(action, $0)
                    },
                route(.POST, "/v1/queue/\(action)", access: .submit, classify: { _ in .wait }) {
                    try await editMany(action, $0)
                },
            ]
        } + [route(.POST, "/v1/requests/{id}/credential", access: .submit) { try await setCredential($0) }]
    }

    private typealias EditAction = ControlMessage.EditAction

    /// Returns the hold reasons of those of the requests whose hold the edit ends if it is possible.
    private func holds(endedBy action: EditAction, of ids: [String]) async throws -> [String: HoldReason] {
        action.endsHold ? try await queue.holdReasons(of: ids) : [:]
    }

    /// The body of an edit of a single request, whose id is in the path.
    private struct RetryOptions: Decodable {
        var newKey: Bool?
    }

    private func editOne(_ action: EditAction, _ request: ControlRequest) async throws -> ControlResponse {
        let id = id(in: request)
        let options = try request.optionalMessage(RetryOptions.self)
        try await requireOwnership(of: id, by: request.caller)
        let edit = try action.edit(newKey: options?.newKey ?? false, within: request.caller.quota(quota))
        let holds = try await holds(endedBy: action, of: [id])
        let result = try await queue.edit(edit, [id])[0]
        return try Self.response(to: "\(action)", id, result, hold: holds[id])
    }

    private func setCredential(_ request: ControlRequest) async throws -> ControlResponse {
        let id = id(in: request)
        let message = try request.message(ControlMessage.Credential.self)
        try await requireOwnership(of: id, by: request.caller)
        try await requireCredentials([message.credential], usable: true)
        return try Self.response(
            to: "a change of the credential",
            id,
            try await queue.setCredential(message.credential, of: [id])[0]
        )
    }

    private static func response(
        to action: String,
        _ id: String,
        _ result: EditResult,
        hold: HoldReason? = nil
    ) throws(Problem) -> ControlResponse {
        switch result {
        case .done: .json(message(action, id, result, hold), encoder: ControlMessage.encoder)
        case .refused(let state): throw refusal(action, id, state)
        case .unknown: throw Problem.unknownRequest(id)
        }
    }

    private func editMany(_ action: EditAction, _ request: ControlRequest) async throws -> ControlResponse {
        let message = try request.message(ControlMessage.Edit.self)
        switch (message.ids, message.filter) {
        case (let ids?, nil): return try await edit(action, ids, message, for: request.caller)
        case (nil, let filter?): return try await edit(action, filter, message, for: request.caller)
        default: throw Problem.malformedBody("either `ids` or `filter` is required")
        }
    }

    private func edit(
        _ action: EditAction,
        _ ids: [String],
        _ message: ControlMessage.Edit,
        for caller: Caller
    ) async throws -> ControlResponse {
        guard ids.count <= ControlMessage.mostIDs else {
            throw Problem.malformedBody(
                "`ids` has \(ids.count) ids; at most \(ControlMessage.mostIDs) are accepted. Use `filter` to edit more"
            )
        }
        guard message.dryRun != true else { throw Problem.malformedBody("`dry_run` requires `filter`") }
        let ownership = try await ownership(of: ids, by: caller)
        let own = ids.filter(ownership.includes)
        let edit = try action.edit(newKey: message.newKey ?? false, within: caller.quota(quota))
        let holds = try await holds(endedBy: action, of: own)
        var done = try await queue.edit(edit, own)[...]
        let results = ids.map { id in
            if ownership.foreign.contains(id) { return Self.foreign(id) }
            let result = ownership.includes(id) ? done.removeFirst() : .unknown
            return Self.message("\(action)", id, result, holds[id])
        }
        return .json(ControlMessage.Edited(results: results), encoder: ControlMessage.encoder)
    }

    private func edit(
        _ action: EditAction,
        _ filter: ControlMessage.Filter,
        _ message: ControlMessage.Edit,
        for caller: Caller
    ) async throws -> ControlResponse {
        let edit = try action.edit(newKey: message.newKey ?? false, within: caller.quota(quota))
        var matching = RequestFilter(
            host: try filter.host.map(Problem.host),
            lane: filter.lane,
            tag: try filter.tag.map(Problem.tag)
        )
        matching.submitter = try caller.selected(filter.submitter).map(SelectedSubmitter.user)
        if let names = filter.state {
            // Otherwise a program that selects no state would edit requests in all of them.
            guard !names.isEmpty else {
                throw Problem.malformedQuery("state", "[]", accepted: "at least one state")
            }
            matching.states = try QueuedRequest.State.named(names)
        }
        let result = try await queue.edit(edit, matching: matching, isDryRun: message.dryRun ?? false)
        return .json(
            ControlMessage.EditedAll(result),
            encoder: ControlMessage.encoder
        )
    }

    private static func refusal(_ action: String, _ id: String, _ state: QueuedRequest.State) -> Problem {
        Problem(.conflict, code: "refused", detail: refusalWords(action, id, state))
    }

    private static func refusalWords(_ action: String, _ id: String, _ state: QueuedRequest.State)
        -> String
    {
        // No other hold refuses an edit.
        let held =
            "`\(id)` is held because the queue cannot decrypt it, so \(action) is not possible; "
            + "the last error of the request is the cause"
        if state == .held { return held }
        let words = "`\(id)` is \(state.rawValue), so \(action) is not possible"
        guard let accepted = EditAction(rawValue: action)?.states, !accepted.contains(state) else {
            return words
        }
        return "\(words); accepted states: \(accepted.map(\.rawValue).joined(separator: ", "))"
    }

    // MARK: Messages

    private static func foreign(_ id: String) -> ControlMessage.Edited.Result {
        let problem = Problem.notSubmitter(id)
        return ControlMessage.Edited.Result(id: id, done: false, code: problem.code, detail: problem.detail)
    }

    private static func message(
        _ action: String,
        _ id: String,
        _ result: EditResult,
        _ hold: HoldReason?
    ) -> ControlMessage.Edited.Result {
        switch result {
        case .done(let state):
            ControlMessage.Edited.Result(
                id: id,
                done: true,
                state: state.rawValue,
                endedHold: hold?.rawValue
            )
        case .refused(let state):
            ControlMessage.Edited.Result(
                id: id,
                done: false,
                state: state.rawValue,
                code: "refused",
                detail: refusalWords(action, id, state)
            )
        case .unknown:
            ControlMessage.Edited.Result(
                id: id,
                done: false,
                code: QueueError.Code.unknownRequest.rawValue,
                detail: Problem.unknownRequest(id).detail
            )
        }
    }
}

extension ControlMessage.EditAction {
    /// The states of the requests to which the edit applies. In each of them, it can still be refused for another
    /// reason.
    fileprivate var states: [QueuedRequest.State] {
        switch self {
        case .retry: [.pending, .blocked, .held, .dead]
        case .hold: [.pending, .blocked, .inflight, .held]
        case .release: [.held]
        case .cancel: [.pending, .blocked, .inflight, .held, .dead]
        }
    }

    /// - Parameter quota: The quota that a retry must not exceed; `nil` for none.
    fileprivate func edit(newKey: Bool, within quota: UserQuota?) throws(Problem) -> QueueEdit {
        guard self == .retry || !newKey else {
            throw .malformedBody("`new_key` is only accepted for retry, not for \(self)")
        }
        return switch self {
        case .retry: .retry(newKey: newKey, quota: quota)
        case .hold: .hold
        case .release: .release
        case .cancel: .cancel
        }
    }

    /// Whether the edit ends the hold of a held request, so that the request is sent.
    fileprivate var endsHold: Bool { self == .release || self == .retry }
}

extension ControlMessage.EditedAll {
    fileprivate init(_ result: FilteredEditResult) {
        self.init(
            done: result.done,
            refused: result.refused,
            code: result.refusal?.code.rawValue,
            detail: result.refusal?.message
        )
    }
}

extension ControlMessage.Edit: ChoiceMessage {
    static var choices: [String: [String]] { ["filter.state": QueuedRequest.State.allCases.map(\.rawValue)] }
}
