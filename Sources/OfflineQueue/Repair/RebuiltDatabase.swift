internal import Foundation
internal import GRDB

/// A new database with the rows that remain in the pages of a damaged one. It has the schema of the store, but neither
/// triggers nor enforced constraints, so that salvage reads and checks the rows as in the damaged database itself. All
/// methods block.
///
/// Which table a row belongs to follows from the tree that contains its page. The roots of the trees are in the schema,
/// most of which is not on the first page of the file. If a tree cannot be read completely, the leaf pages that belong
/// to no tree are read as well, and their rows are assigned by the number and the types of their values.
final class RebuiltDatabase: Sendable {
    /// The tables from which salvage reads. `depends` has no row numbers.
    private static let tables = ["request", "history", "lane", "body", "meta", "depends"]
    /// The tables whose rows are recognized without a tree. An index may have the same values as `depends`, and the rows
    /// of `meta` are similar to those of other tables.
    private static let recognizable = ["request", "history", "lane", "body"]
    /// The numbers of the requests that were found on a page that may be free.
    private static let uncertain = "salvage_uncertain"

    let database: DatabaseQueue
    /// The tables of which a part could not be read.
    let incomplete: Set<String>
    private let directory: String

    /// - Parameter directory: The directory of the damaged database; the new one is created in a new directory inside
    ///   it.
    /// - Throws: An error if the damaged file cannot be opened, or if the new one cannot be written.
    init(in directory: String) throws {
        let pages = try DatabasePages(of: "\(directory)/queue.sqlite")
        let target = "\(directory)/rebuilt-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: target,
            withIntermediateDirectories: false,
            attributes: [.posixPermissions: 0o700]
        )
        self.directory = target
        do {
            database = try DatabaseQueue(path: "\(target)/queue.sqlite", configuration: Self.configuration)
            try QueueSchema.migrator.migrate(database)
            incomplete = try database.writeWithoutTransaction { database in
                try Self.prepare(database)
                var incomplete: Set<String> = []
                try database.inTransaction {
                    incomplete = try Self.fill(database, from: pages)
                    return .commit
                }
                return incomplete
            }
        } catch {
            try? FileManager.default.removeItem(atPath: target)
            throw error
        }
    }

    /// Closes the database and removes it.
    func remove() {
        try? database.close()
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// A note about the tables of which a part could not be read; `nil` if all were read.
    var note: String? {
        guard !incomplete.isEmpty else { return nil }
        let names = Self.tables.filter(incomplete.contains).map { "`\($0)`" }.joined(separator: ", ")
        return "only a part of the pages of \(names) could be read"
    }

    /// Returns whether a request may have ended already, because its page may be free.
    ///
    /// - Parameter database: The connection to a rebuilt database.
    static func isUncertain(_ sequence: Int64, in database: Database) throws -> Bool {
        try database.row("SELECT 1 FROM \(uncertain) WHERE seq = ?", [sequence]) != nil
    }

    /// The database is temporary, so it need not survive a crash.
    private static var configuration: Configuration {
        var configuration = Configuration()
        configuration.label = "netwatch.queue.rebuilt"
        configuration.foreignKeysEnabled = false
        configuration.prepareDatabase { database in
            try database.execute(
                sql: """
                    PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY;
                    PRAGMA ignore_check_constraints = ON
                    """
            )
        }
        return configuration
    }

    private static func prepare(_ database: Database) throws {
        let sql = """
            SELECT type || ' "' || name || '"' FROM sqlite_schema WHERE type = 'trigger' OR sql LIKE 'CREATE UNIQUE %'
            """
        for object in try String.fetchAll(database, sql: sql) { try database.execute(sql: "DROP \(object)") }
        try database.execute(sql: "DELETE FROM meta")
        try database.execute(sql: "CREATE TABLE \(uncertain) (seq INTEGER PRIMARY KEY)")
    }
}

// MARK: - Filling

extension RebuiltDatabase {
    /// Copies the rows, and returns the tables of which a part could not be read.
    private static func fill(_ database: Database, from pages: DatabasePages) throws -> Set<String> {
        var reader = TreeReader(pages)
        let free = pages.freePages()
        let roots = SchemaRoots(of: pages, free: free ?? [], with: &reader)
        var incomplete: Set<String> = []
        for name in tables {
            let table = try RebuiltTable(name, in: database)
            let isWhole = try roots[name].map { root in
                var areInserted = true
                let isRead = try reader.read(root, isTable: name != "depends") { row, record in
                    if try !table.insert(row, record) { areInserted = false }
                }
                return isRead && areInserted
            }
            if isWhole != true { incomplete.insert(name) }
        }
        if !incomplete.isEmpty {
            try addSeparatePages(of: pages, to: incomplete, free, reader, database)
        }
        // Salvage holds the requests whose dependencies cannot be read.
        if incomplete.contains("depends") { try database.execute(sql: "DROP TABLE depends") }
        return incomplete
    }

    /// Copies the rows of pages that belong to no tree.
    ///
    /// - Parameter free: The free pages, which are left out; `nil` if they are unknown.
    private static func addSeparatePages(
        of pages: DatabasePages,
        to incomplete: Set<String>,
        _ free: Set<Int>?,
        _ reader: TreeReader,
        _ database: Database
    ) throws {
        let candidates = try recognizable.filter(incomplete.contains).map {
            try RebuiltTable($0, in: database)
        }
        for number in 1..<pages.count + 1 where free?.contains(number) != true {
            guard let leaf = reader.separateLeaf(number),
                let table = candidates.first(where: { $0.accepts(leaf.map(\.record)) })
            else { continue }
            for (row, record) in leaf where try table.insert(row, record) {
                guard free == nil, table.name == "request" else { continue }
                try database.execute(
                    sql: "INSERT OR IGNORE INTO \(uncertain) VALUES (?)",
                    arguments: [row]
                )
            }
        }
        try database.execute(
            sql: """
                DELETE FROM request WHERE seq IN (SELECT seq FROM \(uncertain)) AND seq IN (SELECT seq FROM history)
                """
        )
    }
}

/// A table of the new database, and the form of its rows in a file.
private struct RebuiltTable {
    private struct Column {
        let name: String
        let type: String
        let isKey: Bool
        let isOptional: Bool
    }

    let name: String
    private let columns: [Column]
    private let isNumbered: Bool
    private let database: Database

    init(_ name: String, in database: Database) throws {
        (self.name, self.database) = (name, database)
        columns = try database.columns(in: name).map { column in
            Column(
                name: column.name,
                type: column.type,
                isKey: column.primaryKeyIndex > 0,
                isOptional: !column.isNotNull && column.primaryKeyIndex == 0
            )
        }
        // The key of a table with row numbers is the number, and its column in the file is NULL.
        isNumbered = columns.count { $0.isKey } == 1
    }

    /// Returns whether all records have the form of this table's rows.
    func accepts(_ records: [Record]) -> Bool {
        records.allSatisfy(accepts)
    }

    private func accepts(_ record: Record) -> Bool {
        record.values.count == columns.count
            && zip(columns, record.values).allSatisfy { column, value in
                switch value.storage {
                case .null: column.isKey ? isNumbered : column.isOptional
                case .int64: column.type == "INTEGER" && !(column.isKey && isNumbered)
                case .string: column.type == "TEXT"
                case .blob: column.type == "BLOB"
                case .double: false
                }
            }
    }

    /// Adds a row, unless a row with the same key exists.
    ///
    /// - Returns: `false` if the record does not have the form of this table's rows, or if its key is in use.
    func insert(_ row: Int64, _ record: Record) throws -> Bool {
        guard accepts(record) else { return false }
        let values = zip(columns, record.values).map { column, value in
            column.isKey && isNumbered ? row.databaseValue : value
        }
        let names = columns.map(\.name).joined(separator: ", ")
        let marks = values.map { _ in "?" }.joined(separator: ", ")
        let statement = try database.cachedStatement(
            sql: "INSERT OR IGNORE INTO \(name) (\(names)) VALUES (\(marks))"
        )
        try statement.execute(arguments: StatementArguments(values))
        return database.changesCount > 0
    }
}

/// The root pages of the tables, from the rows of the schema that can be read.
private struct SchemaRoots {
    private var found: [String: (row: Int64, root: Int)] = [:]

    /// - Parameters:
    ///   - free: The free pages, if they are known.
    ///   - reader: Reads the tree of the schema, whose root is the first page.
    init(of pages: DatabasePages, free: Set<Int>, with reader: inout TreeReader) {
        var read: [String: (row: Int64, root: Int)] = [:]
        let isWhole = reader.read(1, isTable: true) { row, record in
            Self.add(row, record, to: &read)
        }
        if !isWhole {
            var separate: [String: (row: Int64, root: Int)] = [:]
            for number in 1..<pages.count + 1 where !free.contains(number) {
                for (row, record) in reader.separateLeaf(number) ?? [] {
                    Self.add(row, record, to: &separate)
                }
            }
            read.merge(separate) { known, _ in known }
        }
        found = read
    }

    subscript(_ table: String) -> Int? { found[table]?.root }

    /// Adds the root of a table. If there are several rows for a table, the newest counts: a migration may have created
    /// the table again.
    private static func add(_ row: Int64, _ record: Record, to found: inout [String: (row: Int64, root: Int)])
    {
        let values = record.values
        guard values.count == 5, String.fromDatabaseValue(values[0]) == "table",
            let name = String.fromDatabaseValue(values[1]),
            case .int64(let number) = values[3].storage, let root = Int(exactly: number), root > 1,
            row > found[name]?.row ?? .min
        else { return }
        found[name] = (row, root)
    }
}
