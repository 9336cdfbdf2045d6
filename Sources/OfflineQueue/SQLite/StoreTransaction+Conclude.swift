internal import Foundation
internal import GRDB

/// Stores the outcomes of attempts (T3), and recovers requests of dead owners (T4).
extension StoreTransaction {
    /// Stores the outcome of an attempt. Returns `false`, and changes nothing, if the lease is no longer current.
    mutating func conclude(_ conclusion: Conclusion) throws -> Bool {
        guard let request = try request(conclusion.sequence), request.token == conclusion.token else {
            return false
        }
        let delay = delay(after: conclusion)
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
            try close(request.lane, for: min(closure, settings.longestClosure), status: conclusion.status)
        }
        return true
    }

    private func close(_ lane: Int64, for closure: Duration, status: Int?) throws {
        let end = now + closure
        let length = end.milliseconds - now.milliseconds
        try execute(
            """
            UPDATE lane SET not_before = ?, boot_not_before = ?, closure = ?, closed_by = ? WHERE id = ?
            """,
            [end.milliseconds, clock.sinceBoot + length, length, status, lane]
        )
    }

    /// Returns the time until the request is due again. It may exceed the maximum if the server closed the lane for
    /// longer, and after a timeout, because the server may stay busy for as long as the timeout.
    private func delay(after conclusion: Conclusion) -> Duration {
        let closure = min(conclusion.laneClosure ?? .zero, settings.longestClosure)
        let longest = max(settings.longestDelay, closure)
        return max(min(conclusion.delay, longest), conclusion.overrun ?? .zero)
    }

    /// The maximum number of recorded attempts of a request.
    private static let rememberedAttempts = 32

    /// - Parameter start: The start of the attempt. Default `nil`: the attempt ends now.
    private func record(
        _ attempt: AttemptRecord,
        of conclusion: Conclusion,
        from start: Timestamp? = nil
    ) throws {
        let (seconds, attoseconds) = attempt.duration.components
        let microseconds = seconds * 1_000_000 + attoseconds / 1_000_000_000_000
        let error = conclusion.detail.map { String(decoding: $0.utf8.prefix(512), as: UTF8.self) }
        try execute(
            StoreStatements.insertAttempt,
            [
                conclusion.sequence, start?.milliseconds ?? now.milliseconds - microseconds / 1000,
                microseconds,
                conclusion.status, attempt.curlCode, error,
            ]
        )
        try execute(StoreStatements.deleteOldAttempts, [conclusion.sequence, Self.rememberedAttempts])
    }

    /// Recovers requests in flight that an earlier owner left when it ended. Each of their attempts counts, and is
    /// recorded like any other, because the server may have received the request.
    mutating func recover() throws {
        for row in try rows(StoreStatements.orphans, [environment.ownerEpoch]) {
            let request = try StoredRequest(row: row)
            let interruption = Conclusion(interrupting: request)
            let start = Timestamp(milliseconds: try row["next_at"])
            // The wall clock may have been set back since the start.
            try record(.interrupted, of: interruption, from: min(start, now))
            try move(request, by: .abandoned(token: request.token!, now: now), interruption)
        }
    }
}

// MARK: - The end of a request

extension StoreTransaction {
    /// Moves a finished request to the table `history`, so that the tables that claims read stay small. A request that
    /// leaves no record is removed from there at once, so that its end is reported as that of any other request.
    mutating func finish(
        _ request: StoredRequest,
        as ending: RequestLifecycle.Ending,
        _ outcome: Conclusion?
    ) throws {
        try moveToHistory(request, as: ending, outcome)
        guard !request.options.isRecorded else { return }
        try forget(request.sequence)
    }

    private mutating func moveToHistory(
        _ request: StoredRequest,
        as ending: RequestLifecycle.Ending,
        _ outcome: Conclusion?
    ) throws {
        let isDead = ending.isDead
        let response = outcome?.response
        let size: Int64 = try request.row["size"]
        let kept = size - (isDead ? 0 : request.bodyBytes) + (response?.size ?? 0)
        try environment.events.during(ending.eventCause) {
            try execute(
                StoreStatements.insertHistory,
                moment &+ [
                    "state": request.state.name.rawValue, "whole": isDead, "kept": kept,
                    "attempts": request.state.attempts, "deferrals": request.state.deferrals,
                    "status": outcome?.status, "detail": ending.description(after: outcome),
                    "seq": request.sequence,
                    "fence": request.token,
                ]
            )
        }
        try requireChange(of: request.sequence)
        try execute(StoreStatements.deleteRequest, [request.sequence])
        if let response { try keep(response, of: request) }
        if !isDead { try freeBody(request.sequence, file: request.bodyFile) }
        if let tag = request.options.tag { completedTags.insert(tag) }
        if request.options.mayHaveWebhook {
            try enqueueWebhook(ofFinished: request.sequence, isExpired: ending.isExpired)
        }
        // A superseded request has a successor in the same lane. The requests that depended on it now wait for the
        // successor.
        guard ending != .superseded else { return }
        drainedLanes.insert(request.lane)
        try resolveDependents(of: request.sequence, isDelivered: ending.isDelivered)
    }

    private func keep(_ response: RecordedResponse, of request: StoredRequest) throws {
        let sealer = try sealerForWriting()
        // An encrypted store without its key keeps no plaintext.
        guard !sealer.isLocked else { return }
        try execute(
            StoreStatements.insertResponse,
            [
                request.sequence, response.status,
                try sealer.seal(HeaderText.encode(response.headers), .responseHeaders, of: request.id),
                try sealer.seal(response.body, .responseBody, of: request.id),
                response.isTruncated, sealer.keyID,
            ]
        )
    }

    /// Deletes a body: the row, or the spool file after the commit.
    mutating func freeBody(_ sequence: Int64, file: String?) throws {
        if let file { freedFiles.append(file) } else { try execute(StoreStatements.deleteBody, [sequence]) }
    }

    /// Unblocks the requests that depend on a finished request, or holds them if it was not delivered.
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

    /// Holds a request whose dependency failed, and records the reason as its last error. Only the first failed
    /// dependency is recorded, because it is the cause that users look for.
    mutating func hold(_ dependent: StoredRequest, because loss: String) throws {
        try move(dependent, by: .dependencyFailed)
        try recordFailedDependency(of: dependent.sequence, loss)
    }

    func recordFailedDependency(of sequence: Int64, _ loss: String) throws {
        try execute(StoreStatements.recordFailedDependency, ["seq": sequence, "loss": loss])
    }

    /// Returns a message about a request that was not delivered, for the requests that depend on it. A superseded
    /// request may still be in the table `request`.
    private func loss(of sequence: Int64) throws -> String {
        let found = try row(StoreStatements.undeliveredDependency, ["seq": sequence])
        guard let found else { return "depends on a request that no longer exists" }
        return "depends on \(quoted(try found["id"] as String)), which is \(try found["state"] as String)"
    }

    /// Returns whether the request still waits for other requests.
    func isBlocked(_ sequence: Int64) throws -> Bool {
        try row("SELECT 1 FROM depends WHERE seq = ? LIMIT 1", [sequence]) != nil
    }
}

extension Conclusion {
    /// The outcome of an attempt during which the process of its queue ended.
    fileprivate init(interrupting request: StoredRequest) {
        self.init(
            sequence: request.sequence,
            token: request.token!,
            verdict: .retry(countsAsAttempt: true),
            detail: RequestLifecycle.interruptedReason
        )
    }
}

extension AttemptRecord {
    /// The record of an attempt during which the process ended, so that its duration is not known. 42 is
    /// CURLE_ABORTED_BY_CALLBACK.
    fileprivate static let interrupted = AttemptRecord(duration: .zero, curlCode: 42)
}

extension RecordedResponse {
    /// The approximate size of the response in the database, in bytes.
    fileprivate var size: Int64 {
        Int64(headers.reduce(body.count) { $0 + HeaderText.size($1.name, $1.value) })
    }
}

extension RequestLifecycle.Ending {
    var isDelivered: Bool {
        if case .delivered = self { true } else { false }
    }

    var isDead: Bool { reason != nil }

    /// The last error to store with the finished request. For a request that was given up after its last permitted
    /// attempt, it contains the error of that attempt: `failed 3 times: HTTP 503`.
    fileprivate func description(after outcome: Conclusion?) -> String? {
        guard let reason, let cause = outcome?.detail, case .retry? = outcome?.verdict else {
            return reason ?? outcome?.detail
        }
        return "\(reason): \(cause)"
    }

    fileprivate var eventCause: EventRecorder.Cause? { isExpired ? .expiry : nil }

    fileprivate var isExpired: Bool {
        if case .dead(.expired, _) = self { true } else { false }
    }

    /// The reason why the request was given up; `nil` for any other ending.
    var reason: String? {
        if case .dead(_, let reason) = self { reason } else { nil }
    }
}

/// Stores the webhooks that report how requests have ended.
extension StoreTransaction {
    /// Stores the webhook of a request that this transaction has moved to `history`.
    ///
    /// The limits are not checked: the ended request has left, and had reserved the webhook's bytes. If the webhook
    /// cannot be created, the reason is added to the error of the ended request. That happens if the row was damaged or
    /// cannot be encrypted, and must not fail the transaction, which contains other requests.
    mutating func enqueueWebhook(ofFinished sequence: Int64, isExpired: Bool) throws {
        guard let row = try row("SELECT * FROM history WHERE seq = ?", [sequence]) else { return }
        let options = try EnqueueOptions(row: row)
        // If the options cannot be read, only this column shows whether there was a webhook.
        guard try options.onDone != nil || !row["is_droppable"] else { return }
        do {
            let new = try webhook(of: options, reporting: row, isExpired: isExpired)
            try store(new)
            try execute("UPDATE history SET webhook_id = ? WHERE seq = ?", [new.id, sequence])
        } catch let error as QueueError {
            try execute(
                "UPDATE history SET last_error = ifnull(last_error || '; ', '') || ? WHERE seq = ?",
                ["the webhook was not stored: \(error.message)", sequence]
            )
        }
    }

    private func webhook(of reported: EnqueueOptions, reporting row: StoredRow, isExpired: Bool) throws
        -> NewRequest
    {
        guard let webhook = reported.onDone else {
            throw QueueError(.storeUnusable, reported.unreadable ?? "the request has no webhook")
        }
        // A random id: a user who could calculate it in advance could enqueue another request with it.
        let id = UUIDv7.make(at: now)
        var options = EnqueueOptions(id: id)
        options.idempotencyKey = .value(id)
        options.credential = webhook.credential
        options.webhookOf = try row["id"]
        options.submitter = try (row["submitter"] as UInt32?).map { Submitter(user: $0) }
        let body = try WebhookPayload(row, isExpired: isExpired).encoded()
        // The URL and the credential's name were checked when the request was accepted.
        return try NewRequest(
            webhook.request(reporting: body),
            options: options,
            body: .inline(body),
            for: .import,
            now: now.date
        )
    }

    /// Returns the id of the webhook that reports the end of a finished request; `nil` if the queue does not know it.
    ///
    /// - Parameter row: A row of `history`.
    func webhookID(reporting row: StoredRow) throws -> String? {
        guard let id = try row["webhook_id"] as String? else { return nil }
        return try isKnown(id) ? id : nil
    }

    private mutating func store(_ new: NewRequest) throws {
        var state = RequestLifecycle(rules: RequestRules(mayBeSentTwice: true))
        try state.apply(.accepted(due: now, isBlocked: false))
        let lane = try lane(of: new.lane)
        _ = try insert(new, lane: lane.id, state: state, due: now)
        changedLanes.insert(lane.id)
    }
}

/// The JSON object that a webhook sends; ``Webhook`` documents its members.
private struct WebhookPayload: Encodable {
    /// The maximum length of the reason in bytes.
    private static let maximumReason = 512

    let v = 1
    let id: String
    let tag: String?
    let event: String
    let state: String
    let status: Int?
    let reason: String?
    let attempts: Int
    let finished: String

    init(_ row: StoredRow, isExpired: Bool) throws {
        id = try row["id"]
        tag = try row["tag"]
        let state: QueuedRequest.State = try row["state"]
        self.state = state.rawValue
        event = isExpired ? QueueEvent.Kind.expired.rawValue : state.rawValue
        status = try row["last_status"]
        reason = try (row["last_error"] as String?).map(Self.printable)
        attempts = try row["attempts"]
        finished = Timestamp(milliseconds: try row["finished_at"]).date.rfc3339
    }

    /// Returns the beginning of a message without control characters, which JSON would escape with six bytes each.
    private static func printable(_ message: String) -> String {
        let bytes = message.utf8.prefix(maximumReason).map {
            $0 < 0x20 || $0 == 0x7f ? UInt8(ascii: " ") : $0
        }
        var text = String(decoding: bytes, as: UTF8.self)
        // A character that was cut becomes U+FFFD, which may be longer than the rest of it.
        while text.utf8.count > maximumReason { text.removeLast() }
        return text
    }

    func encoded() throws(QueueError) -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(self), data.count <= Webhook.maximumBodyBytes else {
            throw QueueError(.storeUnusable, "the outcome cannot be encoded")
        }
        return data
    }
}
