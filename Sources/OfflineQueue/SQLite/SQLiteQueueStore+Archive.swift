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

    /// Returns `true` when the database cannot be read, so that the file is kept.
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

    package func inspect() async throws -> QueueVerification {
        do {
            return try await inspectDatabase()
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CANTOPEN {
            throw StoreFault(error).error(path: "\(environment.directory)/queue.sqlite")
        }
    }

    private func inspectDatabase() async throws -> QueueVerification {
        let inspector = try await DispatchQueue.global().run { [environment] in
            try Inspector(database: "\(environment.directory)/queue.sqlite")
        }
        try beginInspection(inspector)
        defer { endInspection(inspector) }
        var report = try await inspector.inspect(spool) { self.isFileNamed($0) }
        report.add(opened: openedLog, current: try await currentLog())
        return report
    }

    /// Reads the log between two commits.
    private func currentLog() async throws -> LogReport? {
        try await batcher.read { [environment] _ in
            do throws(SystemError) {
                return try LogFile(of: "\(environment.directory)/queue.sqlite").report()
            } catch {
                throw QueueError(.storeUnavailable, "the database's log cannot be read: \(error)", path: nil)
            }
        }
    }
}

extension QueueVerification {
    /// Adds the findings of the log.
    ///
    /// - Parameters:
    ///   - opened: The log that an earlier owner left.
    ///   - current: The log between two commits of this owner.
    fileprivate mutating func add(opened: LogReport?, current: LogReport?) {
        if let damage = current?.damageWhileOpen { found(.database, Self.log, damage) }
        guard let opened, let note = opened.note else { return }
        found(opened.damage == nil ? .logTail : .database, Self.log, note)
    }

    private static let log = "queue.sqlite-wal"
}
