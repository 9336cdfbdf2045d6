internal import Foundation
internal import GRDB
internal import GRDBSQLite

/// A row of the database whose columns are checked when they are read. After damage or a manual edit, a column may hold
/// a value of any type, and GRDB's own accessors would then end the process. GRDB also looks up column names
/// case-insensitively, which takes longer than reading the values.
struct StoredRow {
    private let values: [DatabaseValue]
    private let names: [String]

    fileprivate init(_ values: [DatabaseValue], names: [String]) {
        self.values = values
        self.names = names
    }

    /// Reads a column. NULL is `nil` if the value's type is optional, and an error if it is not.
    subscript<Value: DatabaseValueConvertible>(_ column: String) -> Value {
        get throws(DamagedColumn) {
            let found = value(column)
            guard let value = Value.fromDatabaseValue(found) else {
                throw DamagedColumn(name: column, found: found.storage)
            }
            return value
        }
    }

    /// Reads a column that contains one of a fixed set of words.
    subscript<Word: RawRepresentable<String>>(_ column: String) -> Word {
        get throws(DamagedColumn) {
            let text: String = try self[column]
            guard let word = Word(rawValue: text) else {
                throw DamagedColumn(name: column, found: .string(text))
            }
            return word
        }
    }

    /// Reads a column that contains one of a fixed set of words; `nil` for NULL.
    subscript<Word: RawRepresentable<String>>(_ column: String) -> Word? {
        get throws(DamagedColumn) {
            if isNull(column) { nil } else { try self[column] as Word }
        }
    }

    func isNull(_ column: String) -> Bool { value(column).isNull }

    /// Reads the number of a row, and checks that it is within the bounds of the query. A damaged B-tree may return a
    /// row that comes before these bounds. A loop that reads each page from the last row of the previous page would
    /// then never end.
    func place(_ column: String, after low: Int64, before high: Int64 = .max) throws(DamagedColumn) -> Int64 {
        let place: Int64 = try self[column]
        guard low < place, place < high else { throw DamagedColumn(name: column, found: .int64(place)) }
        return place
    }

    /// Whether the query selected a column.
    func has(_ column: String) -> Bool { names.contains(column) }

    /// Returns a copy with another value in a column.
    func replacing(_ column: String, with value: some DatabaseValueConvertible) -> StoredRow {
        var values = values
        guard let index = names.firstIndex(of: column) else {
            preconditionFailure("no column \(column) was selected")
        }
        values[index] = value.databaseValue
        return StoredRow(values, names: names)
    }

    /// The approximate size of the row in memory, in bytes.
    var approximateSize: Int {
        values.reduce(256) { sum, value in
            switch value.storage {
            case .blob(let data): sum + data.count
            case .string(let text): sum + text.utf8.count
            default: sum
            }
        }
    }

    private func value(_ column: String) -> DatabaseValue {
        guard let index = names.firstIndex(of: column) else {
            preconditionFailure("no column \(column) was selected")
        }
        return values[index]
    }
}

/// The error for a column whose value has the wrong type, is out of bounds, or is not one of the permitted words.
struct DamagedColumn: Error, CustomStringConvertible {
    let name: String
    let found: DatabaseValue.Storage

    var description: String { "the column `\(name)` has an invalid value: \(content)" }

    private var content: String {
        switch found {
        case .null: "NULL"
        case .int64, .double: "a number"
        case .string(let text): "\(quoted(text))"
        case .blob(let data): "\(data.count) bytes"
        }
    }
}

/// A cursor over the rows that a statement returns.
///
/// GRDB's own row cursor builds a dictionary of the column names for each query. While a lane was being emptied, this
/// took 15 % of the processor time of the database's thread, as measured with `perf`.
final class StoredRowCursor: DatabaseCursor {
    typealias Element = StoredRow

    let _statement: Statement
    var _isDone = false

    fileprivate init(_ statement: Statement, _ arguments: StatementArguments) throws {
        // Setting the arguments also resets the statement.
        try statement.setArguments(arguments)
        _statement = statement
    }

    deinit {
        // The result is ignored: it repeats the error of the last step, which was thrown already.
        sqlite3_reset(_statement.sqliteStatement)
    }

    func _element(sqliteStatement: SQLiteStatement) -> StoredRow {
        let names = _statement.columnNames
        let values = names.indices.map { DatabaseValue(sqliteStatement: sqliteStatement, index: CInt($0)) }
        return StoredRow(values, names: names)
    }
}

extension Database {
    /// Returns the first row of a query; `nil` if there is none.
    func row(_ sql: String, _ arguments: StatementArguments = StatementArguments()) throws -> StoredRow? {
        try cursor(sql, arguments).next()
    }

    /// Returns all rows of a query.
    func rows(_ sql: String, _ arguments: StatementArguments = StatementArguments()) throws -> [StoredRow] {
        try Array(cursor(sql, arguments))
    }

    /// Returns a cursor that reads the rows of a query one at a time. The same SQL must not be run again until the
    /// cursor is released, because the statement is cached.
    func cursor(_ sql: String, _ arguments: StatementArguments) throws -> StoredRowCursor {
        try StoredRowCursor(cachedStatement(sql: sql), arguments)
    }
}

extension QueueError {
    /// Creates the error for a row that cannot be read. A `QueueError` is used unchanged.
    init(reading error: any Error) {
        self = (error as? QueueError) ?? QueueError(.storeUnusable, StoreFault.words(error))
    }
}

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

/// The parts of a stored request that are encrypted together: its header fields, its idempotency key, and the SHA-256 of
/// its body.
struct RequestContent: Hashable {
    /// The header lines in the form of ``HeaderText``, without the idempotency key.
    var headers = ""
    var key: KeyHeader?
    /// The SHA-256 of the body; `nil` without a body. It remains when the body is deleted.
    var digest: SHA256Digest?
}

extension RequestContent {
    private static let quoted = "quoted "

    /// The stored form: a line with the SHA-256, a line with the key, and the header lines. The first two are empty if
    /// there is none. `quoted ` precedes the name of a key that is sent in quotes.
    var stored: String {
        let key = key.map { ($0.isQuoted ? Self.quoted : "") + "\($0.name): \($0.value)" }
        return "\(digest.map { "\($0)" } ?? "")\n\(key ?? "")\n\(headers)"
    }

    /// Parses the stored form.
    ///
    /// - Throws: ``SealFault``, which does not quote the text: header fields may be confidential.
    init(stored text: String) throws(SealFault) {
        let lines = text.utf8.split(separator: 10, maxSplits: 2, omittingEmptySubsequences: false)
        guard lines.count == 3 else { throw Self.malformed }
        if !lines[0].isEmpty {
            guard let digest = SHA256Digest(String(Substring(lines[0]))) else { throw Self.malformed }
            self.digest = digest
        }
        if !lines[1].isEmpty {
            let isQuoted = lines[1].starts(with: Self.quoted.utf8)
            let line = lines[1].dropFirst(isQuoted ? Self.quoted.utf8.count : 0)
            guard line.contains(UInt8(ascii: ":")),
                let field = HeaderText.decode(String(Substring(line))).first, !field.name.isEmpty
            else {
                throw Self.malformed
            }
            key = KeyHeader(name: field.name, value: field.value, isQuoted: isQuoted)
        }
        headers = String(Substring(lines[2]))
    }

    private static let malformed = SealFault(cause: .malformed, part: SealedPart.content.name)
}
