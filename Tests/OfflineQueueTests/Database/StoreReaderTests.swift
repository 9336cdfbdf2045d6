internal import Dispatch
internal import Foundation
internal import GRDB
internal import Glibc
internal import Testing

@testable internal import OfflineQueue

@Suite(.timeLimit(.minutes(5))) struct StoreReaderTests {
    private let directory = TemporaryDirectory()

    @Test func `the queue can be read during a write`() async throws {
        let store = try await SQLiteQueueStore(directory: directory.path)
        _ = try await store.enqueue(try new("a"), try new("b"))
        let isWriting = DispatchSemaphore(value: 0)
        let mayCommit = DispatchSemaphore(value: 0)
        async let change = store.write(rows: 1) { transaction in
            let result = try transaction.edit(.hold, "a")
            isWriting.signal()
            mayCommit.wait()
            return result
        }
        await DispatchQueue.global().run { isWriting.wait() }
        // The commit waits until these reads have returned. If a read waited for the commit, neither would ever end.
        #expect(try await store.states() == ["a": .pending, "b": .pending])
        #expect(try await store.details(of: "a")?.summary.state == .pending)
        #expect(try await store.storedStates(of: ["a", "none"]).mapValues(\.state) == ["a": .pending])
        #expect(try await store.counts()[.pending] == 2)
        #expect(try await store.statistics().requests == 2)
        #expect(try await store.ids(beginningWith: "b", limit: 4) == ["b"])
        #expect(try await store.archive.availableCapacity().requests > 0)
        #expect(
            try await store.archive.rows(after: ExportCursor(part: .waiting, position: 0), bytes: 1 << 20)
                .count == 2
        )
        #expect(try await store.edit(.hold, matching: RequestFilter(), isDryRun: true).result.done == 2)
        mayCommit.signal()
        #expect(try await change == .done(.held))
        #expect(try await store.states() == ["a": .held, "b": .pending])
        await store.close()
    }

    @Test func `a request that is being written is known`() async throws {
        let store = try await SQLiteQueueStore(directory: directory.path)
        let isWriting = DispatchSemaphore(value: 0)
        let mayCommit = DispatchSemaphore(value: 0)
        let request = try new("a")
        async let change = store.write(rows: 1) { transaction in
            let accepted = try transaction.enqueue([request])
            isWriting.signal()
            mayCommit.wait()
            return accepted.count
        }
        await DispatchQueue.global().run { isWriting.wait() }
        let known = Task.immediate { try await store.archive.known(["a", "c"]) }
        // Reads that do not wait for a commit run in the order of their calls. If the call were one of them, it would
        // have returned now.
        _ = try await store.counts()
        mayCommit.signal()
        #expect(try await known.value == ["a"])
        #expect(try await change == 1)
        await store.close()
    }

    @Test func `a closed store leaves no log and refuses reads`() async throws {
        let store = try await SQLiteQueueStore(directory: directory.path)
        _ = try await store.enqueue(try new("a"))
        #expect(try await store.states() == ["a": .pending])
        await store.close()
        #expect(!FileManager.default.fileExists(atPath: directory.path + "/queue.sqlite-wal"))
        await #expect(throws: QueueError.self) { try await store.counts() }
    }

    @Test func `reads without a pause do not make the log grow`() async throws {
        let store = try await SQLiteQueueStore(directory: directory.path)
        let path = directory.path + "/queue.sqlite-wal"
        try await withThrowingTaskGroup { group in
            // Two tasks read in turn, so that a snapshot is in use nearly all the time.
            for _ in 0..<2 {
                group.addTask { while !Task.isCancelled { try await store.readSlowly() } }
            }
            var longest: Int64 = 0
            for number in 0..<1000 {
                let body = StoredBody.inline(Data(repeating: 0x61, count: 64_000))
                let request = QueueRequest(method: "PUT", url: "http://example.com/")
                let options = EnqueueOptions(id: "\(number)")
                _ = try await store.enqueue([NewRequest(request, options: options, body: body)])
                longest = max(longest, FileSystem.size(of: path))
            }
            // On a busy machine, a read may stay in progress during many commits. Without truncation, the log would be
            // four times as long as the threshold.
            #expect(longest < 3 * LogTruncation.threshold)
            group.cancelAll()
        }
        #expect(try await store.counts()[.pending] == 1000)
        await store.close()
    }
}

extension StoreReaderTests {
    private static func requests(_ number: Int) throws -> [NewRequest] {
        let body = StoredBody.inline(Data(repeating: 0x61, count: 64_000))
        return try (0..<100).map { index in
            let request = QueueRequest(method: "PUT", url: "http://example.com/")
            return try NewRequest(request, options: EnqueueOptions(id: "\(number)-\(index)"), body: body)
        }
    }

    /// Writes until the log is longer than the threshold, while another connection has a snapshot of the database.
    ///
    /// - Returns: The size of the log after that connection has closed its snapshot.
    private func letLogGrow(_ store: SQLiteQueueStore, from first: Int) async throws -> Int64 {
        var configuration = QueueDatabase.readingConfiguration
        configuration.allowsUnsafeTransactions = true
        let other = try DatabaseQueue(path: directory.path + "/queue.sqlite", configuration: configuration)
        try await other.writeWithoutTransaction { database in
            try database.execute(sql: "BEGIN")
            _ = try Int.fetchOne(database, sql: "SELECT count(*) FROM request")
        }
        for number in first..<first + 4 { _ = try await store.enqueue(try Self.requests(number)) }
        try await other.writeWithoutTransaction { try $0.execute(sql: "COMMIT") }
        try other.close()
        return FileSystem.size(of: directory.path + "/queue.sqlite-wal")
    }

    @Test func `the log shrinks after another program has stopped reading, with and without writes`()
        async throws
    {
        let store = try await SQLiteQueueStore(directory: directory.path)
        let log = directory.path + "/queue.sqlite-wal"
        #expect(try await letLogGrow(store, from: 0) > LogTruncation.threshold)
        try await store.check()
        // The connection runs this after the truncation.
        _ = try await store.pragma("synchronous")
        #expect(FileSystem.size(of: log) == 0)
        #expect(try await letLogGrow(store, from: 4) > LogTruncation.threshold)
        // The first commit copies the log to the database, and the second one starts the log again.
        for id in ["a", "b"] { _ = try await store.enqueue(try new(id)) }
        #expect(FileSystem.size(of: log) <= CommitBatcher.longestLog)
        #expect(try await store.counts()[.pending] == 802)
        await store.close()
    }
}

extension SQLiteQueueStore {
    /// Reads for some milliseconds, during which a snapshot of the database is in use.
    fileprivate func readSlowly() async throws {
        try await read { transaction in
            _ = try transaction.row("SELECT count(*) FROM request")
            usleep(5000)
        }
    }
}
