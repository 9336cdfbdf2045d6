internal import Foundation
internal import GRDB

/// A column that may be encrypted.
struct SealedColumn: Sendable {
    let name: String
    let part: SealedPart

    /// The column of `request` and `history`.
    static let content = SealedColumn(name: "content", part: .content)
    /// The column of `body`, which queries join with a row of `request` or `history`.
    static let body = SealedColumn(name: "bytes", part: .body)
    /// The columns of `response`.
    static let ofResponse = [
        SealedColumn(name: "headers", part: .responseHeaders),
        SealedColumn(name: "body", part: .responseBody),
    ]
}

extension [SealedColumn] {
    /// The assignments of an `UPDATE` statement that sets these columns, in their order.
    var assignments: String { map { "\($0.name) = ?" }.joined(separator: ", ") }
}

/// Decrypts rows. The code that reads a row afterwards does not know whether the row was encrypted.
extension StoredRow {
    /// Returns a row of `request` or `history` with its columns decrypted. The query must also select `id` and
    /// `key_id`, and with `content` the columns of ``BoundContent``.
    ///
    /// - Throws: ``SealFault`` if the row cannot be decrypted, ``DamagedColumn``.
    func opened(by sealer: Sealer) throws -> StoredRow {
        guard !isNull("key_id") else { return try checkedPlain("content", .content) }
        return try opened([.content, .body], by: sealer, of: try self["id"])
    }

    /// Returns a row of `response` with its columns decrypted.
    ///
    /// - Parameter id: The id of the request.
    /// - Throws: ``SealFault``, ``DamagedColumn``.
    func openedResponse(by sealer: Sealer, of id: String) throws -> StoredRow {
        guard !isNull("key_id") else { return try checkedPlain("headers", .responseHeaders) }
        return try opened(SealedColumn.ofResponse, by: sealer, of: id)
    }

    /// Returns a row without `key_id` unchanged. Throws if its header fields are encrypted: then someone has removed
    /// the `key_id`, and the ciphertext would be sent. Plaintext ends with a newline, and Base64 does not.
    private func checkedPlain(_ column: String, _ part: SealedPart) throws -> StoredRow {
        guard has(column), let text = try self[column] as String? else { return self }
        guard text.isEmpty || text.utf8.last == UInt8(ascii: "\n") else {
            throw SealFault(cause: .damaged, part: part.name)
        }
        return self
    }

    /// Returns the values of columns, encrypted with the current key. The row must be decrypted.
    ///
    /// - Throws: ``QueueError`` if OpenSSL fails, ``DamagedColumn``.
    func sealed(_ columns: [SealedColumn], by sealer: Sealer, of id: String) throws -> [DatabaseValue] {
        try columns.map { column in
            let (name, part) = (column.name, column.part)
            guard !isNull(name) else { return .null }
            let bound = try bound(to: part)
            return part.isText
                ? try sealer.seal(try self[name] as String, part, of: id, bound).databaseValue
                : try sealer.seal(try self[name] as Data, part, of: id, bound).databaseValue
        }
    }

    private func bound(to part: SealedPart) throws -> [String?] {
        part == .content ? try BoundContent(row: self).values : []
    }

    private func opened(_ columns: [SealedColumn], by sealer: Sealer, of id: String) throws -> StoredRow {
        var row = self
        for column in columns where has(column.name) && !isNull(column.name) {
            let (name, part) = (column.name, column.part)
            let bound = try bound(to: part)
            if part.isText {
                row = row.replacing(
                    name,
                    with: try sealer.open(try self[name] as String, part, of: id, bound)
                )
            } else {
                row = row.replacing(name, with: try sealer.open(try self[name] as Data, part, of: id, bound))
            }
        }
        return row
    }

    /// Returns the row without the values that cannot be decrypted.
    var withoutSealedValues: StoredRow { replacing("content", with: RequestContent().stored) }
}

extension SealedPart {
    fileprivate var isText: Bool {
        switch self {
        case .content, .responseHeaders: true
        case .body, .responseBody: false
        }
    }
}

/// The values of a request as they are written to a row: encrypted if the store has a key.
struct SealedContent {
    let keyID: String?
    /// The stored form of ``RequestContent``.
    let content: String
    /// The key of the body's file.
    let bodyKey: Data?
    /// The inline body; `nil` if there is none.
    let body: Data?

    /// - Throws: ``QueueError`` if OpenSSL fails.
    init(_ new: NewRequest, by sealer: Sealer) throws(QueueError) {
        keyID = sealer.keyID
        var content = RequestContent(headers: new.headers, key: new.key)
        var (key, bytes): (Data?, Data?) = (nil, nil)
        switch new.body {
        case .spooled(let file): (content.digest, key) = (file.digest, file.sealedKey)
        case .inline(let data): (content.digest, bytes) = (try SHA256.digest(of: data), data)
        case .none, .unreadable, .changed, .gone: break
        }
        self.content = try sealer.seal(content.stored, .content, of: new.id, BoundContent(new).values)
        bodyKey = key
        body = if let bytes { try sealer.seal(bytes, .body, of: new.id) } else { nil }
    }
}

extension BoundContent {
    fileprivate init(_ new: NewRequest) {
        self.init(
            method: new.method,
            url: new.url,
            isRepeatable: new.isRepeatable,
            bodyBytes: new.body.size,
            credential: new.options.credential
        )
    }

    fileprivate init(row: StoredRow) throws {
        try self.init(
            method: row["method"],
            url: row["url"],
            isRepeatable: row["is_repeatable"],
            bodyBytes: row["body_bytes"],
            credential: row["credential"]
        )
    }
}
