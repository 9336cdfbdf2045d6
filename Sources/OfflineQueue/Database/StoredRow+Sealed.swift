internal import Foundation
internal import GRDB

/// A column that may be encrypted.
struct SealedColumn: Sendable {
    let name: String
    let part: SealedPart

    static let ofHeaders = [SealedColumn(name: "headers", part: .headers)]
    static let ofKey = [SealedColumn(name: "key_value", part: .key)]
    /// The columns of `request` and `history`.
    static let ofRequest =
        ofHeaders + ofKey + [
            SealedColumn(name: "body_sha256", part: .digest),
            SealedColumn(name: "inline_sha256", part: .inlineDigest),
        ]
    /// The column of `body`, which queries join with a row of `request` or `history`.
    static let ofBody = [SealedColumn(name: "bytes", part: .body)]
    /// The columns of `response`.
    static let ofResponse = [
        SealedColumn(name: "headers", part: .responseHeaders),
        SealedColumn(name: "body", part: .responseBody),
    ]

    fileprivate static let ofRequestAndBody = ofRequest + ofBody
}

extension [SealedColumn] {
    /// The assignments of an `UPDATE` statement that sets these columns, in their order.
    var assignments: String { map { "\($0.name) = ?" }.joined(separator: ", ") }
}

/// Decrypts rows. The code that reads a row afterwards does not know whether the row was encrypted.
extension StoredRow {
    /// Returns a row of `request` or `history` with its columns decrypted. The query must also select `id` and
    /// `key_id`, and with `headers` the columns of ``BoundContent``.
    ///
    /// - Throws: ``SealFault`` if the row cannot be decrypted, ``DamagedColumn``.
    func opened(by sealer: Sealer) throws -> StoredRow {
        guard !isNull("key_id") else { return try checkedPlain(.headers) }
        return try opened(SealedColumn.ofRequestAndBody, by: sealer, of: try self["id"])
    }

    /// Returns a row of `response` with its columns decrypted.
    ///
    /// - Parameter id: The id of the request.
    /// - Throws: ``SealFault``, ``DamagedColumn``.
    func openedResponse(by sealer: Sealer, of id: String) throws -> StoredRow {
        guard !isNull("key_id") else { return try checkedPlain(.responseHeaders) }
        return try opened(SealedColumn.ofResponse, by: sealer, of: id)
    }

    /// Returns a row without `key_id` unchanged. Throws if its header fields are encrypted: then someone has removed
    /// the `key_id`, and the ciphertext would be sent. Plaintext header fields end with a newline, and Base64 does not.
    private func checkedPlain(_ headers: SealedPart) throws -> StoredRow {
        guard has("headers"), let text = try self["headers"] as String? else { return self }
        guard text.isEmpty || text.utf8.last == UInt8(ascii: "\n") else {
            throw SealFault(cause: .damaged, part: headers.name)
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
        part == .headers ? try BoundContent(row: self).values : []
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
    var withoutSealedValues: StoredRow {
        replacing("headers", with: "").replacing("key_value", with: String?.none)
    }
}

extension SealedPart {
    fileprivate var isText: Bool {
        switch self {
        case .headers, .key, .digest, .inlineDigest, .responseHeaders: true
        case .body, .responseBody: false
        }
    }
}

/// The values of a request as they are written to a row: encrypted if the store has a key.
struct SealedContent {
    let keyID: String?
    let headers: String
    let keyValue: String?
    /// The SHA-256 of the body's file.
    let digest: String?
    /// The SHA-256 of an inline body, which the row keeps when the body is deleted.
    let inlineDigest: String?
    /// The key of the body's file.
    let bodyKey: Data?
    /// The inline body; `nil` if there is none.
    let body: Data?
    /// The SHA-256 of an inline body that is not encrypted. The tag of an encrypted one has the same purpose.
    let bodyDigest: Data?

    /// - Throws: ``QueueError`` if OpenSSL fails.
    init(_ new: NewRequest, by sealer: Sealer) throws(QueueError) {
        keyID = sealer.keyID
        headers = try sealer.seal(new.headers, .headers, of: new.id, BoundContent(new).values)
        keyValue = if let key = new.key { try sealer.seal(key.value, .key, of: new.id) } else { nil }
        var (file, bytes): (SpooledBody?, Data?) = (nil, nil)
        switch new.body {
        case .spooled(let body): file = body
        case .inline(let data): bytes = data
        case .none, .unreadable, .changed, .gone: break
        }
        digest = if let file { try sealer.seal(file.digest.description, .digest, of: new.id) } else { nil }
        bodyKey = file?.sealedKey
        body = if let bytes { try sealer.seal(bytes, .body, of: new.id) } else { nil }
        let found: SHA256Digest? = if let bytes { try SHA256.digest(of: bytes) } else { nil }
        inlineDigest =
            if let found { try sealer.seal(found.description, .inlineDigest, of: new.id) } else { nil }
        bodyDigest = keyID == nil ? found.map { Data($0.bytes) } : nil
    }
}

extension BoundContent {
    fileprivate init(_ new: NewRequest) {
        self.init(
            method: new.method,
            url: new.url,
            keyHeader: new.key?.name,
            isKeyQuoted: new.key?.isQuoted ?? false,
            bodyBytes: new.body.size,
            credential: new.options.credential
        )
    }

    fileprivate init(row: StoredRow) throws {
        try self.init(
            method: row["method"],
            url: row["url"],
            keyHeader: row["key_header"],
            isKeyQuoted: row["key_quoted"],
            bodyBytes: row["body_bytes"],
            credential: row["credential"]
        )
    }
}
