internal import Dispatch
internal import Foundation
internal import GRDB
internal import NetwatchEventLoop

extension SQLiteQueueStore: QueueArchive {
    package var archive: any QueueArchive { self }

    package func rows(after cursor: ExportCursor, bytes: Int) async throws -> [ArchivedRow] {
        try await read { try $0.archivedRows(after: cursor, bytes: bytes) }
    }

    package func known(_ ids: [String]) async throws -> Set<String> {
        try await batcher.read { [environment] in try StoreTransaction($0, environment).known(ids) }
    }

    package func availableCapacity() async throws -> AvailableCapacity {
        try await read { try $0.availableCapacity() }
    }

    package func restore(_ requests: [RestoredRequest]) async throws -> [Restoration] {
        let bytes = requests.reduce(0) { $0 + $1.new.size }
        return try await write(rows: requests.count, bytes: bytes, isAtomic: true) {
            try $0.restore(requests)
        }
    }

    package func link(_ links: [DependencyLink]) async throws {
        try await write(rows: links.count) { try $0.link(links) }
    }

    /// Returns whether a row refers to the spool file of this name, according to an index. Also returns `true` if the
    /// database cannot be read, so that the file is kept.
    package func isFileNamed(_ name: String) -> Bool {
        let found = try? batcher.readBlocking { database in
            try database.row(
                """
                SELECT 1 FROM request WHERE body_file = ?1
                UNION ALL SELECT 1 FROM history WHERE body_file = ?1 AND is_whole = 1
                """,
                [name]
            ) != nil
        }
        return found ?? true
    }

    package func unusedFiles(among names: [String]) async throws -> [String] {
        try await SpoolFileNames.unused(among: names) { place in
            try await read { try SpoolFileNames(of: $0.database, from: place) }
        }
    }

    package func inspect() async throws -> QueueVerification {
        try await withInspector { inspector in
            var report = try await inspector.inspect(self.spool) { self.isFileNamed($0) }
            report.add(opened: self.openedLog, current: try await self.currentLog())
            return report
        }
    }

    package func quickCheck(within limit: Duration) async throws -> QuickCheck {
        do {
            return try await withInspector { try await $0.quickCheck(within: limit) }
        } catch let error where StoreFault.isDamage(error) {
            return .damaged(StoreFault.words(error))
        }
    }

    package func scan(_ position: ScanPosition, _ timing: ScanTiming) async throws -> ScanPiece {
        let bodies = InspectedBodies(spool: spool, isNamed: { self.isFileNamed($0) }, pace: timing.pace)
        var piece = ScanPiece()
        do {
            piece = try await withInspector { try await $0.scan(position, bodies, within: timing.limit) }
        } catch let error where StoreFault.isDamage(error) {
            // Without the first page, SQLite can read no other one.
            piece.report.found(.database, "queue.sqlite", StoreFault.words(error))
        } catch let error where StoreFault.isUnreadable(error) {
            piece.report.found(.databaseUnreadable, "queue.sqlite", StoreFault.words(error))
        } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
            // A migration has removed the table since the record was stored.
            guard let table = position.table else { throw error }
            piece.next = .table(after: table)
        }
        if let damage = piece.report.findings.first(where: { $0.kind == .database }) {
            await DispatchQueue.global().run { [batcher] in batcher.record(damage: damage.message) }
        }
        return piece
    }

    private var scanFile: String { "\(environment.directory)/queue.scan" }

    package func scanRecord() async -> ScanRecord {
        await DispatchQueue.global().run { [scanFile] in
            let content = try? PrivateFile.read(scanFile, upTo: ScanRecord.longest)
            // Without a record, the next scan begins at the start of the store.
            return content.flatMap { ScanRecord(stored: $0.bytes) } ?? ScanRecord()
        }
    }

    package func keep(_ record: ScanRecord) async throws {
        try await DispatchQueue.global().run { [scanFile] in
            try PrivateFile.replace(scanFile, with: try record.stored(), isDurable: true)
        }
    }

    /// Opens a connection for an inspection, and closes it at the end.
    private func withInspector<Value: Sendable>(
        _ inspect: (Inspector) async throws -> Value
    ) async throws -> Value {
        do {
            let inspector = try await DispatchQueue.global().run { [environment] in
                try Inspector(database: "\(environment.directory)/queue.sqlite", sealer: environment.sealer)
            }
            let result: Result<Value, any Error>
            do {
                result = .success(try await whileRecorded(inspector, inspect))
            } catch {
                result = .failure(error)
            }
            // Closing the last connection writes the log to the database and removes the log. The store must close the
            // last connection, so the inspector closes its own now instead of when its last reference is released.
            await DispatchQueue.global().run { inspector.close() }
            return try result.get()
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CANTOPEN {
            throw StoreFault(error).error(path: "\(environment.directory)/queue.sqlite")
        }
    }

    private func whileRecorded<Value>(
        _ inspector: Inspector,
        _ inspect: (Inspector) async throws -> Value
    ) async throws -> Value {
        try beginInspection(inspector)
        defer { endInspection(inspector) }
        return try await inspect(inspector)
    }

    /// Reads the write-ahead log while no commit is in progress.
    private func currentLog() async throws -> LogReport? {
        try await batcher.read { [environment] _ in
            let database = "\(environment.directory)/queue.sqlite"
            do throws(SystemError) {
                return try LogFile(of: database).report()
            } catch {
                let message = "the database's log `\(database)-wal` cannot be read: \(error)"
                throw QueueError(.storeUnavailable, message, path: nil)
            }
        }
    }
}

extension QueueVerification {
    /// Adds the findings about the write-ahead log.
    ///
    /// - Parameters:
    ///   - opened: The log that the previous owner left when it ended.
    ///   - current: The log of this owner, read between two commits.
    fileprivate mutating func add(opened: LogReport?, current: LogReport?) {
        if let damage = current?.damageWhileOpen { found(.database, Self.log, damage) }
        guard let opened, let note = opened.note else { return }
        found(opened.damage == nil ? .logTail : .database, Self.log, note)
    }

    private static let log = "queue.sqlite-wal"
}
