internal import GRDB

/// A row whose columns may hold values of any type: a damaged page, or a hand, may have put it there. GRDB's own accessors end
/// the process over a value of another type, and look names up without regard to case, which takes them longer than
/// the values.
struct StoredRow {
    private let row: Row
    private let names: [String]

    init(_ row: Row, of statement: Statement) {
        self.row = row
        names = statement.columnNames
    }

    /// An optional is `nil` where there is nothing.
    subscript<Value: DatabaseValueConvertible>(_ column: String) -> Value {
        get throws(DamagedColumn) {
            let found = value(column)
            guard let value = Value.fromDatabaseValue(found) else {
                throw DamagedColumn(name: column, found: found.storage)
            }
            return value
        }
    }

    /// One of the words that the column may hold.
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

    /// A number that what was asked for bounds. A damaged tree may lead back to an earlier row, and whoever goes on
    /// behind the last that was found would go round for ever.
    func place(_ column: String, after low: Int64, before high: Int64 = .max) throws(DamagedColumn) -> Int64 {
        let place: Int64 = try self[column]
        guard low < place, place < high else { throw DamagedColumn(name: column, found: .int64(place)) }
        return place
    }

    /// What it takes in memory, about.
    var approximateSize: Int {
        row.databaseValues.reduce(256) { sum, value in
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
        return row[index]
    }
}

/// A value of a type that its column does not have, or not one of its words.
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

extension Database {
    func row(_ sql: String, _ arguments: StatementArguments = StatementArguments()) throws -> StoredRow? {
        let statement = try cachedStatement(sql: sql)
        return try Row.fetchOne(statement, arguments: arguments).map { StoredRow($0, of: statement) }
    }

    func rows(_ sql: String, _ arguments: StatementArguments = StatementArguments()) throws -> [StoredRow] {
        let statement = try cachedStatement(sql: sql)
        return try Row.fetchAll(statement, arguments: arguments).map { StoredRow($0, of: statement) }
    }

    /// Reads row by row, until `body` returns `false`. A row is valid during its call only.
    func forEachRow(
        _ sql: String,
        _ arguments: StatementArguments,
        _ body: (StoredRow) throws -> Bool
    ) throws {
        let statement = try cachedStatement(sql: sql)
        let rows = try Row.fetchCursor(statement, arguments: arguments)
        while let row = try rows.next() {
            guard try body(StoredRow(row, of: statement)) else { return }
        }
    }
}

extension QueueError {
    /// Why a row is none.
    init(reading error: any Error) {
        self = (error as? QueueError) ?? QueueError(.storeUnusable, "\(error)")
    }
}
