internal import Foundation
internal import GRDB
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// The reader of database pages, compared with SQLite.
@Suite struct TreeReaderTests {
    private let directory = try! ScratchDirectory()
    private var path: String { directory.file("database") }

    /// - Parameter journal: With `wal`, the pages are only in the log while the connection is open.
    @Test(arguments: ["wal", "delete"]) func `records are those that SQLite reads`(journal: String) throws {
        let database = try DatabaseQueue(path: path)
        let (rows, pairs) = try database.writeWithoutTransaction { database in
            try database.execute(
                sql: """
                    PRAGMA journal_mode = \(journal);
                    CREATE TABLE item (a, b, c);
                    CREATE TABLE pair (a, b, PRIMARY KEY (a, b)) WITHOUT ROWID;
                    INSERT INTO item (rowid, a) VALUES (-9223372036854775807, 1.5), (-5, 'é'), (5000000000, x'');
                    """
            )
            try database.inTransaction {
                try Self.fill(database)
                return .commit
            }
            return (
                try Self.values(database, "SELECT rowid, * FROM item ORDER BY rowid"),
                try Self.values(database, "SELECT * FROM pair ORDER BY a, b")
            )
        }
        let roots = try roots(of: database)
        var reader = TreeReader(try DatabasePages(of: path))
        var found: (rows: [[DatabaseValue]], pairs: [[DatabaseValue]]) = ([], [])
        let areRowsWhole = reader.read(roots["item"]!, isTable: true) { number, record in
            found.rows.append([number.databaseValue] + record.values)
        }
        let arePairsWhole = reader.read(roots["pair"]!, isTable: false) { _, record in
            found.pairs.append(record.values)
        }
        #expect(areRowsWhole && found.rows == rows)
        // The records of interior pages of an index come before those of the pages below them.
        #expect(arePairsWhole && found.pairs.count == pairs.count && Set(found.pairs) == Set(pairs))
        try database.close()
    }

    /// The content of a small hostile file must not be multiplied.
    @Test func `cells that overlap are read only as far as they fit into their page`() throws {
        let cell: [UInt8] = [61, 1, 3, 0x81, 0] + [UInt8](repeating: 7, count: 58)
        var bytes = [UInt8](repeating: 0, count: 4096)
        let (start, count) = (4096 - cell.count, 1900)
        bytes.replaceSubrange(0..<8, with: [13, 0, 0, UInt8(count >> 8), UInt8(count & 0xff), 0, 0, 0])
        for index in 0..<count {
            bytes[8 + 2 * index] = UInt8(start >> 8)
            bytes[9 + 2 * index] = UInt8(start & 0xff)
        }
        bytes.replaceSubrange(start..., with: cell)
        let cells = try #require(TreePage(bytes, number: 2)).cells
        #expect(cells.count == count && cells.count { $0 != nil } == 4096 / 61)
    }

    /// Adds rows with values of all sizes of integers, and texts and blobs around the sizes at which a record gets its
    /// first and its second overflow page.
    private static func fill(_ database: Database) throws {
        for bits in 0..<63 {
            let number = Int64(1) << bits
            try database.execute(
                sql: "INSERT INTO item (a, b, c) VALUES (?, ?, NULL)",
                arguments: [number, -number - 1]
            )
        }
        for size in Array(480...500) + Array(4040...4070) + Array(8130...8160) + [65_536, 300_000] {
            try database.execute(
                sql: "INSERT INTO item (rowid, b, c) VALUES (?, ?, zeroblob(?))",
                arguments: [1_000_000 + size, String(repeating: "x", count: size / 2), size - size / 2]
            )
        }
        for number in 0..<500 {
            let text = String(repeating: "k", count: number * 7 % 1500)
            try database.execute(sql: "INSERT INTO pair VALUES (?, ?)", arguments: [number, text])
        }
    }

    @Test func `a damaged page loses no row of another page`() throws {
        let database = try DatabaseQueue(path: path)
        let root = try database.writeWithoutTransaction { database in
            try database.execute(sql: "CREATE TABLE item (a, b)")
            try database.inTransaction {
                for number in 0..<400 {
                    let text = String(repeating: "x", count: number)
                    try database.execute(sql: "INSERT INTO item VALUES (?, ?)", arguments: [number, text])
                }
                return .commit
            }
            return try Int.fetchOne(database, sql: "SELECT rootpage FROM sqlite_schema")!
        }
        try database.close()
        let sound = try Data(contentsOf: URL(fileURLWithPath: path))
        let seed =
            ProcessInfo.processInfo.environment["NETWATCH_SEED"].flatMap { UInt64($0) }
            ?? .random(in: 0...9999)
        var generator = SeededGenerator(seed: seed)
        let pages = try DatabasePages(of: path)
        for round in 0..<CheckSize.choose(small: 100, medium: 300, full: 3000) {
            let damaged = Int.random(in: 2...pages.count, using: &generator)
            // Rows of the damaged page may be lost; if it is the root page, no other page is in a tree.
            let others = try rows(of: sound, root, without: damaged)
            var data = sound
            for _ in 0..<Int.random(in: 1...8, using: &generator) {
                let place = Int.random(in: (damaged - 1) * 4096..<damaged * 4096, using: &generator)
                data[place] = .random(in: 0...255, using: &generator)
            }
            let found = try rows(of: data, root, without: nil)
            #expect(found.isSuperset(of: others), "NETWATCH_SEED=\(seed), round \(round), page \(damaged)")
        }
    }

    /// Returns the rows of all leaf pages, as salvage reads them: those of the tree, and then those of separate pages.
    ///
    /// - Parameter excluded: A page whose rows are left out; `nil` for none.
    private func rows(of data: Data, _ root: Int, without excluded: Int?) throws -> Set<[DatabaseValue]> {
        var data = data
        if let excluded {
            data.replaceSubrange((excluded - 1) * 4096..<excluded * 4096, with: Data(count: 4096))
        }
        try data.write(to: URL(fileURLWithPath: path))
        let pages = try DatabasePages(of: path)
        var reader = TreeReader(pages)
        var found: Set<[DatabaseValue]> = []
        _ = reader.read(root, isTable: true) { row, record in
            found.insert([row.databaseValue] + record.values)
        }
        for number in 2..<pages.count + 1 {
            for (row, record) in reader.separateLeaf(number) ?? [] {
                found.insert([row.databaseValue] + record.values)
            }
        }
        return found
    }

    private static func values(_ database: Database, _ sql: String) throws -> [[DatabaseValue]] {
        try Row.fetchAll(database, sql: sql).map { Array($0.databaseValues) }
    }

    private func roots(of database: DatabaseQueue) throws -> [String: Int] {
        let rows = try database.writeWithoutTransaction {
            try Row.fetchAll($0, sql: "SELECT name, rootpage FROM sqlite_schema WHERE type = 'table'")
        }
        return Dictionary(uniqueKeysWithValues: rows.map { ($0["name"], $0["rootpage"]) })
    }
}
