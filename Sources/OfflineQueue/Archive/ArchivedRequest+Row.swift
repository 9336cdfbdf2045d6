internal import ClientCore
internal import Foundation
internal import GRDB

/// Reads columns of a row that may hold anything: a damaged page, or a hand, may have put it there. The ordinary
/// accessors end the process when a value is of another type.
struct LooseRow {
    let row: Row

    private func storage(_ column: String) -> DatabaseValue.Storage {
        (row[column] as DatabaseValue).storage
    }

    func isNull(_ column: String) -> Bool { storage(column) == .null }

    func integer(_ column: String) throws(QueueError) -> Int64 {
        guard case .int64(let value) = storage(column) else { throw fault(column, "no number") }
        return value
    }

    func text(_ column: String) throws(QueueError) -> String {
        guard case .string(let value) = storage(column) else { throw fault(column, "no text") }
        return value
    }

    func flag(_ column: String) throws(QueueError) -> Bool { try integer(column) != 0 }

    func int(_ column: String) throws(QueueError) -> Int { Int(try integer(column)) }

    func optional<Value>(
        _ column: String,
        _ read: (String) throws(QueueError) -> Value
    ) throws(QueueError) -> Value? {
        isNull(column) ? nil : try read(column)
    }

    /// `nil` for none.
    func bytes(_ column: String) throws(QueueError) -> Data? {
        switch storage(column) {
        case .null: return nil
        case .blob(let data): return data
        default: throw fault(column, "no bytes")
        }
    }

    private func fault(_ column: String, _ what: String) -> QueueError {
        QueueError(.storeUnusable, "its column `\(column)` holds \(what)")
    }
}

extension ArchivedRequest {
    /// The columns that ``init(row:)`` reads, besides `label`, `mode` and `bytes`.
    static let columns = """
        seq, id, state, scheduled_at, hold_reason, priority, created_at, life, expire_at, attempts, deferrals,
        maximum_attempts, method, url, headers, body_bytes, body_file, body_sha256, key_header, key_value, key_quoted,
        at_most_once, replace_key, expectation, last_status, last_error
        """

    /// Reads a row of `request` or `history`; of what it depends on nothing is said there.
    ///
    /// - Throws: ``QueueError`` when the row does not hold a request.
    init(_ row: LooseRow) throws(QueueError) {
        id = try row.text("id")
        method = try row.text("method")
        url = try row.text("url")
        headers = HeaderText.decode(try row.text("headers")).map { [$0.name, $0.value] }
        lane = try row.text("label")
        fifo = try row.text("mode") == LaneKey.Mode.fifo.rawValue
        priority = try row.int("priority")
        created = try row.integer("created_at")
        life = try row.integer("life")
        expires = try row.integer("expire_at")
        scheduled = try row.optional("scheduled_at", row.integer)
        maximumAttempts = try row.optional("maximum_attempts", row.int)
        key = row.isNull("key_value") ? nil : try Key(row)
        atMostOnce = try row.flag("at_most_once")
        replaceKey = try row.optional("replace_key", row.text)
        after = []
        expect = try row.optional("expectation", row.text)
        state = .pending
        attempts = try row.int("attempts")
        deferrals = try row.int("deferrals")
        lastStatus = try row.optional("last_status", row.int)
        lastError = try row.optional("last_error", row.text)
        try readState(row)
    }

    private mutating func readState(_ row: LooseRow) throws(QueueError) {
        switch try row.text("state") {
        case "pending": state = .pending
        case "blocked": state = .blocked
        case "dead": state = .dead
        case "held": (state, holdReason) = (.held, try row.text("hold_reason"))
        // As a restart would leave it.
        case "inflight" where mayBeSentTwice: state = .pending
        case "inflight": (state, holdReason) = (.held, HoldReason.ambiguous.rawValue)
        case let other: throw QueueError(.storeUnusable, "its state is \(quoted(other))")
        }
    }

    private var mayBeSentTwice: Bool {
        !atMostOnce && (key != nil || HTTPMethod.isIdempotent(method))
    }
}

extension ArchivedRequest.Key {
    fileprivate init(_ row: LooseRow) throws(QueueError) {
        header = try row.text("key_header")
        value = try row.text("key_value")
        quoted = try row.flag("key_quoted")
    }
}

// MARK: - Bodies

extension NewRequest.Body {
    /// Reads where the body is, and that it is as long as it was.
    ///
    /// - Throws: ``QueueError`` when it is not there.
    init(_ row: LooseRow) throws(QueueError) {
        let size = try row.integer("body_bytes")
        if row.isNull("body_file") {
            let bytes = try row.bytes("bytes") ?? Data()
            guard bytes.count == size else {
                throw QueueError(.storeUnusable, "its body has \(bytes.count) bytes in place of \(size)")
            }
            self = bytes.isEmpty ? .none : .inline(bytes)
        } else {
            let (name, digest) = (try row.text("body_file"), try row.text("body_sha256"))
            guard let body = SpooledBody(name: name, size: size, digest: digest) else {
                throw QueueError(
                    .storeUnusable,
                    "its body is the file \(quoted(name)), which no spool can have made"
                )
            }
            self = .spooled(body)
        }
    }
}
