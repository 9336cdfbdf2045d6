internal import Dispatch
internal import Foundation
internal import GRDB
internal import Glibc
internal import NetwatchEventLoop

/// Checks a database through a separate connection, so that writers do not wait for the check.
///
/// The connection neither writes nor checkpoints, see ``QueueDatabase/readingConfiguration``. SQLite cannot restart the
/// write-ahead log during a read, so the log grows in the meantime. Rows are therefore read in pages, each in a
/// separate transaction.
final class Inspector: Sendable {
    static let page = 512
    /// The approximate maximum size of the rows of a page: 1 MiB.
    static let pageBytes = 1 << 20
    /// The approximate maximum size of the spooled bodies of the rows of a page: 64 MiB. A scan repeats an interrupted
    /// page from its beginning.
    static let pageBodyBytes: Int64 = 64 << 20
    private static let maximumProblems = 100

    private let database: DatabaseQueue
    private let isEnded = Lock(false)
    let sealer: Sealer

    /// Opens the connection. Blocks.
    init(database path: String, sealer: Sealer = .none) throws {
        self.sealer = sealer
        database = try DatabaseQueue(path: path, configuration: QueueDatabase.readingConfiguration)
    }

    /// Ends the inspection in progress, which throws `CancellationError`. May be called on any thread.
    func end() {
        isEnded.withLock { $0 = true }
        database.interrupt()
    }

    /// Whether ``end()`` was called.
    private var hasEnded: Bool { isEnded.withLock { $0 } }

    /// Closes the connection. Blocks.
    func close() { try? database.close() }

    /// Checks the database and the spool.
    ///
    /// - Parameter isNamed: Returns whether a row currently refers to the spool file of this name, according to an
    ///   index. May block.
    func inspect(
        _ spool: BodySpool,
        isNamed: @escaping @Sendable (String) -> Bool
    ) async throws -> QueueVerification {
        try await withTaskCancellationHandler {
            var report = try await structure()
            try await checkCycles(&report)
            let bodies = InspectedBodies(spool: spool, isNamed: isNamed)
            var place: ExportCursor? = ExportCursor(part: .waiting, position: 0)
            while let cursor = place {
                place = try await checkRequests(after: cursor, bodies, into: &report)
            }
            // The damaged part of the database may refer to the file.
            guard !report.isDatabaseDamaged else { return report }
            for name in try await unusedFiles(among: try await spool.orphans(keeping: isNamed)) {
                report.found(.orphan, name, "no request refers to this spool file")
            }
            return report
        } onCancel: {
            end()
        }
    }

    /// Checks the next requests and their bodies.
    ///
    /// - Returns: Where the next call continues; `nil` at the end.
    func checkRequests(
        after cursor: ExportCursor,
        _ bodies: InspectedBodies,
        into report: inout QueueVerification
    ) async throws -> ExportCursor? {
        let start = ContinuousClock.now
        let page = try await rows(cursor.part, after: cursor.position)
        try await bodies.pace?.rest(since: start)
        report.add(page.faults)
        for row in page.sealed { report.foundUnchecked(row.id, row.reason) }
        report.requests += page.count - page.sealed.count
        for body in page.bodies {
            let row = ExportCursor(part: cursor.part, position: body.position)
            try await report.check(body, in: bodies) { name in
                try await isUsed(name, by: row, in: bodies)
            }
        }
        if let damage = page.damage, !report.isDatabaseDamaged {
            report.found(.database, "queue.sqlite", damage)
        }
        let isEnd = page.count == 0 || page.damage != nil
        return isEnd ? cursor.nextPart : ExportCursor(part: cursor.part, position: page.last)
    }

    /// Returns whether a row refers to a spool file. If the index does not find a row, the row that named the file is
    /// read again without an index, because a damaged index may miss it. If it cannot be read, the file counts as used.
    ///
    /// - Parameter row: The part and the position of the row that named the file.
    private func isUsed(
        _ name: String,
        by row: ExportCursor,
        in bodies: InspectedBodies
    ) async throws -> Bool {
        if await bodies.spool.callBlocking(bodies.isNamed, name) { return true }
        do {
            return try await read { database in
                try database.row(Self.rowNaming(row.part), [row.position, name]) != nil
            }
        } catch let error where StoreFault.isDamage(error) {
            return true
        }
    }

    /// Returns the spool files to which no row refers, according to the tables. If the tables are damaged, no file
    /// counts as unused.
    private func unusedFiles(among names: [String]) async throws -> [String] {
        do {
            return try await SpoolFileNames.unused(among: names) { place in
                try await read { try SpoolFileNames(of: $0, from: place) }
            }
        } catch let error where StoreFault.isDamage(error) {
            return []
        }
    }

    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        guard !hasEnded else { throw CancellationError() }
        return try await DispatchQueue.global().run { [self] in
            do {
                return try database.writeWithoutTransaction(body)
            } catch let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT {
                throw CancellationError()
            }
        }
    }
}

/// The spool of an inspection, and how fast it is read.
struct InspectedBodies: Sendable {
    let spool: BodySpool
    /// Returns whether a row currently refers to the spool file of this name, according to an index. May block.
    let isNamed: @Sendable (String) -> Bool
    /// `nil` to read without rests.
    var pace: DiskPace?

    func verify(_ body: SpooledBody) async throws -> SpooledBodyFault? {
        guard let pace else { return await spool.verify(body) }
        let fault = try await spool.verify(body, pace: pace)
        // A scan raises an alarm, so it does not report that this process lacks a descriptor or memory, but tries
        // again.
        if case .unreadable(let error) = fault, [EMFILE, ENFILE, ENOMEM].contains(error.errno) {
            throw error
        }
        return fault
    }
}

// MARK: - The database as a whole

extension Inspector {
    /// Runs SQLite's check of the structure without the content of indexes, until the limit is reached.
    ///
    /// SQLite before 3.40 notices the limit only after it has read all pages.
    ///
    /// - Parameter table: The table to check with its indexes. Default `nil`: the whole database.
    func quickCheck(of table: String? = nil, within limit: Duration) async throws -> QuickCheck {
        let extent = table?.quotedDatabaseIdentifier ?? "1"
        let found = try await limited(to: limit) {
            try String.fetchOne($0, sql: "PRAGMA quick_check(\(extent))")
        }
        guard let found = found ?? nil else { return .unfinished }
        return found == "ok" ? .noDamage : .damaged(found.replacing("\n", with: " "))
    }

    /// Runs statements until the limit is reached.
    ///
    /// - Returns: The result of `body`; `nil` if the limit was reached.
    func limited<Value: Sendable>(
        to limit: Duration,
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value? {
        do {
            return try await read { database in
                let timeLimit = StatementTimeLimit(of: database, limit)
                defer { timeLimit.end() }
                return try body(database)
            }
        } catch is CancellationError where !hasEnded {
            return nil
        }
    }

    /// Runs SQLite's own checks of the database's structure. Also checks that the counters, which are used to enforce
    /// the limits, match the rows.
    func structure() async throws -> QueueVerification {
        try await read { database in
            var report = QueueVerification()
            do {
                try Self.checkStructure(database, &report)
                try Self.checkCounters(database, &report)
            } catch let error where StoreFault.isDamage(error) {
                report.found(.database, "queue.sqlite", StoreFault.words(error))
            }
            return report
        }
    }

    private static func checkStructure(_ database: Database, _ report: inout QueueVerification) throws {
        let problems = try String.fetchAll(database, sql: "PRAGMA integrity_check(\(maximumProblems))")
        for problem in problems where problem != "ok" { report.found(.database, "queue.sqlite", problem) }
        for row in try database.rows("PRAGMA foreign_key_check") {
            let (table, other): (String, String) = try (row["table"], row["parent"])
            let number = (try row["rowid"] as Int64?).map { "\($0)" } ?? "without a number"
            report.found(.reference, table, "row \(number) refers to a missing row of \(other)")
        }
    }

    /// Compares the counters with the rows. One statement reads both sides of a comparison, so that they are of the
    /// same moment.
    private static func checkCounters(_ database: Database, _ report: inout QueueVerification) throws {
        let totals = """
            SELECT 'queue' AS name, meta.requests AS noted, (SELECT count(*) FROM request) AS found,
            meta.bytes AS notedBytes, (SELECT ifnull(sum(size), 0) FROM request) AS foundBytes FROM meta
            """
        let lanes = """
            SELECT scheme || '://' || host || ':' || port || ' ' || label
            || ifnull(' of the user ' || lane_submitter, '') AS name, lane.requests AS noted, count(size) AS found, lane.bytes AS notedBytes, ifnull(sum(size), 0) AS foundBytes
            FROM lane LEFT JOIN request ON lane_id = lane.id GROUP BY lane.id
            HAVING noted <> found OR notedBytes <> foundBytes
            """
        let history = """
            SELECT 'history' AS name, 0 AS noted, 0 AS found, meta.history_bytes AS notedBytes,
            (SELECT ifnull(sum(kept_bytes), 0) FROM history) AS foundBytes FROM meta
            """
        let users = """
            SELECT 'user ' || user AS name, submitter.requests AS noted, count(size) AS found,
            submitter.bytes AS notedBytes, ifnull(sum(size), 0) AS foundBytes
            FROM submitter LEFT JOIN request ON request.submitter = user GROUP BY user
            """
        for row in try [totals, lanes, history, users].flatMap({ try database.rows($0) }) {
            let noted: (Int64, Int64) = try (row["noted"], row["notedBytes"])
            let found: (Int64, Int64) = try (row["found"], row["foundBytes"])
            guard noted != found else { continue }
            report.found(
                .counter,
                (try? row["name"]) ?? "lane",
                "the counters show \(noted.0) requests and \(noted.1) bytes; actual: \(found.0) and \(found.1)"
            )
        }
    }
}

// MARK: - Dependencies

extension Inspector {
    /// Finds requests that wait for each other. Each cycle contains a request on which an earlier one depends, so that
    /// usually only few requests are examined.
    private func checkCycles(_ report: inout QueueVerification) async throws {
        var last: Int64 = 0
        do {
            while let page = try await laterDependencies(after: last) {
                for (id, other) in page.cycles {
                    report.found(.dependencyCycle, id, "waits for \(quoted(other)), which also waits for it")
                }
                last = page.last
            }
        } catch let error where StoreFault.isDamage(error) {
            // ``structure()`` has already reported the damage.
        }
    }

    /// Examines the next requests on which an earlier one depends; `nil` at the end.
    private func laterDependencies(
        after position: Int64
    ) async throws -> (last: Int64, cycles: [(id: String, other: String)])? {
        try await read { database in
            let rows = try database.rows(
                StoreStatements.laterDependencies,
                ["after": position, "limit": Self.page]
            )
            guard let last = try rows.last?.place("on_seq", after: position) else { return nil }
            let cycles = try rows.compactMap { row -> (id: String, other: String)? in
                let found = try database.row(StoreStatements.cycle, ["seq": row["on_seq"] as Int64])
                return try found.map { (id: try $0["id"], other: try $0["other"]) }
            }
            return (last, cycles)
        }
    }
}
