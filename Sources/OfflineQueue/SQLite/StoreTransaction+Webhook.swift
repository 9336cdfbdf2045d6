internal import Foundation
internal import GRDB

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
