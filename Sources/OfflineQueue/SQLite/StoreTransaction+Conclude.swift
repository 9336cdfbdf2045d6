internal import Foundation
internal import GRDB

/// T3 and T4: ends attempts.
extension StoreTransaction {
    /// Returns `false` when the lease is no longer current.
    mutating func conclude(_ conclusion: Conclusion) throws -> Bool {
        guard let request = try request(conclusion.sequence), request.token == conclusion.token else {
            return false
        }
        // An overrun may exceed every backoff, because the server may be busy for that long.
        let delay = max(min(conclusion.delay, settings.longestDelay), conclusion.overrun ?? .zero)
        if let attempt = conclusion.attempt { try record(attempt, of: conclusion) }
        try move(
            request,
            by: .concluded(token: conclusion.token, conclusion.verdict, due: now + delay),
            conclusion
        )
        if let overrun = conclusion.overrun {
            try execute(StoreStatements.overrun, [(now + overrun).milliseconds, request.sequence])
        }
        if let closure = conclusion.laneClosure {
            let end = now + min(closure, settings.longestClosure)
            try execute(
                "UPDATE lane SET not_before = ?, closed_by = ? WHERE id = ?",
                [end.milliseconds, conclusion.status, request.lane]
            )
        }
        return true
    }

    /// The maximum number of attempts that are kept per request.
    private static let rememberedAttempts = 32

    private func record(_ attempt: AttemptRecord, of conclusion: Conclusion) throws {
        let (seconds, attoseconds) = attempt.duration.components
        let microseconds = seconds * 1_000_000 + attoseconds / 1_000_000_000_000
        let error = conclusion.detail.map { String(decoding: $0.utf8.prefix(512), as: UTF8.self) }
        try execute(
            StoreStatements.insertAttempt,
            [
                conclusion.sequence, now.milliseconds - microseconds / 1000, microseconds, conclusion.status,
                attempt.curlCode, error,
            ]
        )
        try execute(StoreStatements.deleteOldAttempts, [conclusion.sequence, Self.rememberedAttempts])
    }

    /// Recovers requests whose owner died.
    mutating func recover() throws {
        for row in try rows(StoreStatements.orphans, [environment.ownerEpoch]) {
            let request = try StoredRequest(row: row)
            try move(request, by: .abandoned(token: request.token!, now: now))
        }
    }
}

// MARK: - The end of a request

extension StoreTransaction {
    /// Moves a request to the history, so that the tables that claims read stay small.
    mutating func finish(
        _ request: StoredRequest,
        as ending: RequestLifecycle.Ending,
        _ outcome: Conclusion?
    ) throws {
        let isDead = ending.isDead
        let response = outcome?.response
        let size: Int64 = try request.row["size"]
        let kept = size - (isDead ? 0 : request.bodyBytes) + (response?.size ?? 0)
        try execute(
            StoreStatements.insertHistory,
            [
                "state": request.state.name.rawValue, "now": now.milliseconds, "whole": isDead, "kept": kept,
                "attempts": request.state.attempts, "deferrals": request.state.deferrals,
                "status": outcome?.status, "detail": ending.description(after: outcome),
                "seq": request.sequence,
                "fence": request.token,
            ]
        )
        try requireChange(of: request.sequence)
        try execute(StoreStatements.deleteRequest, [request.sequence])
        if let response { try keep(response, of: request.sequence) }
        if !isDead { try freeBody(request.sequence, file: request.bodyFile) }
        // A superseded request leaves a successor in its lane, and the requests that depend on it wait for that.
        guard ending != .superseded else { return }
        drainedLanes.insert(request.lane)
        try resolveDependents(of: request.sequence, isDelivered: ending.isDelivered)
    }

    private func keep(_ response: RecordedResponse, of sequence: Int64) throws {
        try execute(
            StoreStatements.insertResponse,
            [
                sequence, response.status, HeaderText.encode(response.headers), response.body,
                response.isTruncated,
            ]
        )
    }

    mutating func freeBody(_ sequence: Int64, file: String?) throws {
        if let file { freedFiles.append(file) } else { try execute(StoreStatements.deleteBody, [sequence]) }
    }

    /// Unblocks the requests that depend on a finished one. If it was not delivered, holds them instead.
    mutating func resolveDependents(of sequence: Int64, isDelivered: Bool) throws {
        let dependents = try rows(StoreStatements.dependents, [sequence])
        guard !dependents.isEmpty else { return }
        try execute("DELETE FROM depends WHERE on_seq = ?", [sequence])
        let loss = try isDelivered ? nil : loss(of: sequence)
        for row in dependents {
            guard let dependent = try request(try row["seq"]) else { continue }
            if let loss, try !row["is_any"] {
                try hold(dependent, because: loss)
            } else if dependent.state.phase == .blocked, try !isBlocked(dependent.sequence) {
                try move(dependent, by: .unblocked(now: try dependent.earliest(from: now)))
            }
            changedLanes.insert(dependent.lane)
        }
    }

    /// Holds a request whose dependency failed, and records why. Only the first loss is recorded, because that is the
    /// one that users look for.
    mutating func hold(_ dependent: StoredRequest, because loss: String) throws {
        try move(dependent, by: .dependencyFailed)
        try execute(StoreStatements.recordFailedDependency, ["seq": dependent.sequence, "loss": loss])
    }

    /// Describes what became of a request that others depend on. A superseded request may still be in the table.
    private func loss(of sequence: Int64) throws -> String {
        let found = try row(StoreStatements.fate, ["seq": sequence])
        guard let found else { return "depends on a request that no longer exists" }
        return "depends on \(quoted(try found["id"] as String)), which is \(try found["state"] as String)"
    }

    /// Returns whether the request still waits for others.
    func isBlocked(_ sequence: Int64) throws -> Bool {
        try row("SELECT 1 FROM depends WHERE seq = ? LIMIT 1", [sequence]) != nil
    }
}

extension RecordedResponse {
    /// The approximate size in the database in bytes.
    fileprivate var size: Int64 {
        Int64(headers.reduce(body.count) { $0 + HeaderText.size($1.name, $1.value) })
    }
}

extension RequestLifecycle.Ending {
    var isDelivered: Bool {
        if case .delivered = self { true } else { false }
    }

    var isDead: Bool { reason != nil }

    /// The reason why the request was given up. If its attempts are used up, the last failure follows:
    /// `failed 3 times: HTTP 503`.
    fileprivate func description(after outcome: Conclusion?) -> String? {
        guard let reason, let cause = outcome?.detail, case .retry? = outcome?.verdict else {
            return reason ?? outcome?.detail
        }
        return "\(reason): \(cause)"
    }

    /// The reason why the request was given up; `nil` for any other ending.
    var reason: String? {
        if case .dead(_, let reason) = self { reason } else { nil }
    }
}
