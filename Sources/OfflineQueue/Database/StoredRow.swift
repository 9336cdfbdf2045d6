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
