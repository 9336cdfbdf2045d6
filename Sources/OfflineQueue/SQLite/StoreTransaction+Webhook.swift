internal import Foundation
internal import GRDB
internal import Glibc

/// Stores the webhooks that report how requests have ended.
extension StoreTransaction {
    /// Stores the webhook of a request that this transaction has moved to `history`.
    ///
    /// The limits are not checked: the ended request has left, and had reserved the webhook's bytes. If the webhook
    /// cannot be created, the reason is added to the error of the ended request. That happens if the row was damaged or
    /// cannot be encrypted, and must not fail the transaction, which contains other requests.
    mutating func enqueueWebhook(ofFinished sequence: Int64, isExpired: Bool) throws {
        guard let row = try row("SELECT * FROM history WHERE seq = ?", [sequence]) else { return }
        do {
            let new = try webhook(reporting: row, isExpired: isExpired)
            try store(new)
            try execute("UPDATE history SET webhook_id = ? WHERE seq = ?", [new.id, sequence])
        } catch let error as QueueError {
            try execute(
                "UPDATE history SET last_error = ifnull(last_error || '; ', '') || ? WHERE seq = ?",
                ["the webhook was not stored: \(error.message)", sequence]
            )
        }
    }

    private func webhook(reporting row: StoredRow, isExpired: Bool) throws -> NewRequest {
        guard let webhook = try EnqueueOptions(row: row).onDone else {
            throw QueueError(.storeUnusable, "the request has no webhook")
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
        finished = Timestamp(milliseconds: try row["finished_at"]).date.formatted(
            Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        )
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

/// Checks requests whose id is already stored. Only the same request may be enqueued again with a known id.
extension StoreTransaction {
    private static let columns = """
        SELECT id, key_id, method, url, content, is_repeatable, body_bytes, label, mode, priority, replace_key, tag,
        credential, submitter, options
        """

    private static let content = """
        \(columns) FROM request JOIN (SELECT id AS lane, label, mode FROM lane) ON lane = lane_id
        WHERE id = :id
        UNION ALL \(columns) FROM history WHERE id = :id
        """

    /// Compares a new request with the stored one of the same id: its lane, everything that the server would receive,
    /// and the options that a caller gives again when it repeats a call. The idempotency key and the credential are not
    /// compared, because the queue or a user may have changed them. Times are not compared, because callers give them
    /// relative to the time of the call. The settings of the attempts are not compared, because they only tune them.
    ///
    /// - Throws: ``QueueError`` with `idConflict`, whose message lists what differs, or with `encryptionKeyMissing` if
    ///   the stored request cannot be compared.
    func checkContent(of new: NewRequest) throws {
        guard let found = try row(Self.content, ["id": new.id]) else { return }
        let row = try openedForCaller(found)
        let (content, options) = (try RequestContent(row), try EnqueueOptions(row: row))
        let isSame: [(name: String, Bool)] = [
            ("method", try row["method"] == new.method),
            ("URL", try row["url"] == new.url),
            ("headers", Self.lines(content.headers) == Self.lines(new.headers)),
            ("body", try isSame(new.body, row, content)),
            ("lane", try row["label"] == new.lane.label),
            ("FIFO", try row["mode"] == new.lane.mode.rawValue),
            ("priority", options.priority == new.options.priority),
            ("at-most-once", options.isAtMostOnce == new.options.isAtMostOnce),
            ("replace key", options.replaceKey == new.options.replaceKey),
            ("expectation", options.expectation == new.options.expectation),
            ("tag", options.tag == new.options.tag),
            ("webhook", options.onDone == new.options.onDone),
            ("constraints", options.constraints == new.options.constraints),
        ]
        let different = isSame.filter { !$0.1 }.map(\.name)
        guard !different.isEmpty else { return }
        throw QueueError(
            .idConflict,
            "the id \(quoted(new.id)) already belongs to a request that differs in: "
                + "\(different.joined(separator: ", ")); choose another id, or repeat the first request unchanged"
        )
    }

    /// Returns why an imported request is not the stored one with the same id; `nil` if it is.
    ///
    /// It is the same if both have the same submitter and the same content. Otherwise a user who knows the ids of an
    /// export could enqueue other requests with them, and the import would skip those of the export. The submitter of
    /// the stored request is the one in the export, if the queue has written it, or the one of an earlier import: root,
    /// or the user of the service.
    func conflict(of restored: RestoredRequest) throws -> String? {
        let archived = restored.archived
        guard let found = try row(Self.content, ["id": archived.id]) else { return nil }
        let owner: UInt32? = try found["submitter"]
        guard [archived.submitter, restored.exportedSubmitter, 0, geteuid()].contains(owner) else {
            let words = owner.map { "of the user \($0)" } ?? "without a submitter"
            return "the id belongs to a request \(words)"
        }
        let isSame: [(name: String, Bool)] = [
            ("method", try found["method"] == archived.method),
            ("URL", try Self.withoutSecrets(found["url"]) == archived.url),
            ("body", try isSame(archived.body, found)),
            ("lane", try found["label"] == archived.lane),
            ("FIFO", try (found["mode"] == LaneKey.Mode.fifo) == archived.fifo),
        ]
        let different = isSame.filter { !$0.1 }.map(\.name)
        guard !different.isEmpty else { return nil }
        return "the id belongs to a request that differs in: \(different.joined(separator: ", "))"
    }

    /// Returns a URL as exports contain it.
    private static func withoutSecrets(_ url: String) -> String {
        SecretRemoval.apply(to: QueueRequest(method: "GET", url: url)).url
    }

    /// Returns whether the bodies are the same, as far as is known. The hash of a stored body is not known without its
    /// encryption key.
    private func isSame(_ body: ArchivedRequest.Body?, _ found: StoredRow) throws -> Bool {
        guard try found["body_bytes"] == body?.bytes ?? 0 else { return false }
        guard let body, let row = try? opened(found) else { return true }
        return try RequestContent(row).digest?.description == body.sha256
    }

    /// Returns the header lines in sorted order, because the order of header fields does not count as a difference.
    private static func lines(_ headers: String) -> [String] {
        HeaderText.decode(headers).map { "\($0.name): \($0.value)" }.sorted()
    }

    /// Returns whether the bodies are the same, as far as is known.
    private func isSame(_ body: StoredBody, _ row: StoredRow, _ content: RequestContent) throws -> Bool {
        if case .gone(let size) = body { return try size.map { try row["body_bytes"] == $0 } ?? true }
        guard try row["body_bytes"] == body.size else { return false }
        switch body {
        case .spooled(let file): return content.digest == file.digest
        case .inline(let data): return content.digest == (try SHA256.digest(of: data))
        case .none, .unreadable, .changed, .gone: return true
        }
    }
}
