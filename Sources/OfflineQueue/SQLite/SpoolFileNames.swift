internal import GRDB

/// A page of the names of the spool files to which rows refer, read from the tables.
///
/// An index finds a name faster. If a damaged index misses a row, however, the file of this row looks unused, and would
/// be removed.
struct SpoolFileNames: Sendable {
    enum Table: Sendable {
        case request, history
    }

    /// The place of a page: its table, and the position before its first row.
    struct Place: Sendable {
        var table = Table.request
        var position = Int64.min
    }

    /// The maximum number of rows in a page. Each page is a separate transaction, because SQLite cannot restart the
    /// write-ahead log during a read.
    private static let pageRows = 1024

    let names: [String]
    /// The place of the next page; `nil` at the end of the last table.
    let next: Place?

    /// Reads a page.
    ///
    /// - Throws: `DatabaseError`, or ``DamagedColumn`` if a row is damaged.
    init(of database: Database, from place: Place) throws {
        let rows = try database.rows(Self.sql(place.table), [place.position, Self.pageRows])
        var (last, names): (Int64, [String]) = (place.position, [])
        for row in rows {
            last = try row.place("position", after: last)
            if let name = try row["body_file"] as String? { names.append(name) }
        }
        self.names = names
        switch (rows.count == Self.pageRows, place.table) {
        case (true, let table): next = Place(table: table, position: last)
        case (false, .request): next = Place(table: .history)
        case (false, .history): next = nil
        }
    }

    private static func sql(_ table: Table) -> String {
        switch table {
        case .request:
            """
            SELECT seq AS position, body_file FROM request NOT INDEXED
            WHERE seq > ? ORDER BY seq LIMIT ?
            """
        // The name remains in the row after the body was removed.
        case .history:
            """
            SELECT position, CASE WHEN is_whole <> 0 THEN body_file END AS body_file FROM history NOT INDEXED
            WHERE position > ? ORDER BY position LIMIT ?
            """
        }
    }
}

extension SpoolFileNames {
    /// Returns the files to which no row refers, in the given order.
    ///
    /// A request may move to another table between two pages, and is then not found. Therefore a caller also searches
    /// for the names with ``SQLiteQueueStore/isFileNamed(_:)`` before it calls this function.
    ///
    /// - Parameters:
    ///   - names: The names of spool files. A file of a body that was never finished is always unused.
    ///   - readPage: Reads a page.
    static func unused(
        among names: [String],
        readPage: (Place) async throws -> SpoolFileNames
    ) async throws -> [String] {
        var unused = Set(names.filter(SpoolName.isComplete))
        var place: Place? = Place()
        while let current = place, !unused.isEmpty {
            let page = try await readPage(current)
            unused.subtract(page.names)
            place = page.next
        }
        return names.filter { !SpoolName.isComplete($0) || unused.contains($0) }
    }
}
