internal import GRDB
internal import GRDBSQLite

/// A row whose columns may hold values of any type, because of a damaged page or a manual edit. GRDB's own accessors
/// end the process when a value has another type. They also look up names case-insensitively, which takes longer than
/// reading the values.
struct StoredRow {
    private let values: [DatabaseValue]
    private let names: [String]

    fileprivate init(_ values: [DatabaseValue], names: [String]) {
        self.values = values
        self.names = names
    }

    /// Reads a column. An optional is `nil` for NULL.
    subscript<Value: DatabaseValueConvertible>(_ column: String) -> Value {
        get throws(DamagedColumn) {
            let found = value(column)
            guard let value = Value.fromDatabaseValue(found) else {
                throw DamagedColumn(name: column, found: found.storage)
            }
            return value
        }
    }

    /// Reads a column that holds one of a fixed set of words.
    subscript<Word: RawRepresentable<String>>(_ column: String) -> Word {
        get throws(DamagedColumn) {
            let text: String = try self[column]
            guard let word = Word(rawValue: text) else {
                throw DamagedColumn(name: column, found: .string(text))
            }
            return word
        }
    }

    subscript<Word: RawRepresentable<String>>(_ column: String) -> Word? {
        get throws(DamagedColumn) {
            if isNull(column) { nil } else { try self[column] as Word }
        }
    }

    func isNull(_ column: String) -> Bool { value(column).isNull }

    /// Reads a number that the query bounds. A damaged tree may lead back to an earlier row, and a loop that continues
    /// after the last row would never end.
    func place(_ column: String, after low: Int64, before high: Int64 = .max) throws(DamagedColumn) -> Int64 {
        let place: Int64 = try self[column]
        guard low < place, place < high else { throw DamagedColumn(name: column, found: .int64(place)) }
        return place
    }

    /// The approximate memory size in bytes.
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

/// A column value that has the wrong type or is not one of the permitted words.
struct DamagedColumn: Error, CustomStringConvertible {
    let name: String
    let found: DatabaseValue.Storage

    var description: String { "its column `\(name)` holds \(content)" }

    private var content: String {
        switch found {
        case .null: "nothing"
        case .int64, .double: "a number that cannot be there"
        case .string(let text): "\(quoted(text))"
        case .blob(let data): "\(data.count) bytes"
        }
    }
}

/// Reads the rows that a statement returns.
///
/// GRDB's own cursor of rows builds a dictionary of the column names for each query. That took 15 % of the processor
/// time of the database's thread while a lane drained (`perf`).
final class StoredRowCursor: DatabaseCursor {
    typealias Element = StoredRow

    let _statement: Statement
    var _isDone = false

    fileprivate init(_ statement: Statement, _ arguments: StatementArguments) throws {
        // Also resets the statement.
        try statement.setArguments(arguments)
        _statement = statement
    }

    deinit {
        // The result repeats the error of the last step, which is already known.
        sqlite3_reset(_statement.sqliteStatement)
    }

    func _element(sqliteStatement: SQLiteStatement) -> StoredRow {
        let names = _statement.columnNames
        let values = names.indices.map { DatabaseValue(sqliteStatement: sqliteStatement, index: CInt($0)) }
        return StoredRow(values, names: names)
    }
}

extension Database {
    func row(_ sql: String, _ arguments: StatementArguments = StatementArguments()) throws -> StoredRow? {
        try cursor(sql, arguments).next()
    }

    func rows(_ sql: String, _ arguments: StatementArguments = StatementArguments()) throws -> [StoredRow] {
        try Array(cursor(sql, arguments))
    }

    /// Reads rows one at a time. The statement must not be run again until the cursor is released.
    func cursor(_ sql: String, _ arguments: StatementArguments) throws -> StoredRowCursor {
        try StoredRowCursor(cachedStatement(sql: sql), arguments)
    }
}

extension QueueError {
    /// Creates the error for a row that cannot be read.
    init(reading error: any Error) {
        self = (error as? QueueError) ?? QueueError(.storeUnusable, "\(error)")
    }
}
