internal import Foundation
internal import GRDB
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// Stores whose write-ahead log is damaged, by a power cut or a faulty disk.
@Suite(.timeLimit(.minutes(5))) struct DamagedLogTests {
    private let scratch = try! ScratchDirectory()
    private var directory: String { scratch.file("copy") }
    private var log: String { "\(directory)/queue.sqlite-wal" }
    /// The size of a frame of the log in bytes: a page and the frame's header.
    private static let frame = 4096 + 24

    /// Creates a store as a crash leaves it after `count` commits of one request each, by copying the files of an open
    /// store.
    private func crashed(_ count: Int) async throws {
        let store = try await SQLiteQueueStore(directory: scratch.file("state"))
        for number in 0..<count { try await store.enqueue(try new("a\(number)")) }
        try shell("cp -a \(scratch.file("state")) \(directory)")
        await store.close()
    }

    private func flip(at offset: Int) throws {
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: log))
        let place = UInt64(offset)
        try file.seek(toOffset: place)
        let byte = try #require(try file.read(upToCount: 1)?.first)
        try file.seek(toOffset: place)
        try file.write(contentsOf: Data([byte ^ 1]))
        try file.close()
    }

    private var length: Int {
        get throws { try #require(FileManager.default.attributesOfItem(atPath: log)[.size] as? Int) }
    }

    private func opened<Value>(_ body: (OfflineQueue, SQLiteQueueStore) async throws -> Value) async throws
        -> Value
    {
        let store = try await SQLiteQueueStore(directory: directory)
        let queue = OfflineQueue(
            configuration: OfflineQueue.Configuration(directory: directory),
            store: store,
            sender: FakeSender(),
            gate: FakeGate()
        )
        let value = try await body(queue, store)
        await queue.stop()
        return value
    }

    private func error(_ body: () async throws -> Void) async -> QueueError? {
        do {
            try await body()
            return nil
        } catch {
            return error as? QueueError
        }
    }

    @Test func `an intact log is sound, and no commit is dropped`() async throws {
        try await crashed(5)
        try await OfflineQueue.checkLeftoverLog(directory: directory)
        try await opened { queue, store async throws in
            #expect(store.openingNotes == [])
            #expect(try await queue.verify().findings.isEmpty)
            #expect(try await store.all().count == 5)
        }
    }

    @Test func `damage in the log is detected before the queue is opened, and nothing is changed`()
        async throws
    {
        try await crashed(20)
        try flip(at: 32 + Self.frame * 2 + 1000)
        let before = try shell("cd \(directory) && sha256sum queue.sqlite queue.sqlite-wal")
        let found = await error { try await OfflineQueue.checkLeftoverLog(directory: directory) }
        #expect(found?.code == .storeUnusable)
        #expect(found?.message.contains("frame 3 of its log is damaged") == true, "\(found?.message ?? "")")
        #expect(try shell("cd \(directory) && sha256sum queue.sqlite queue.sqlite-wal") == before)
        let aside = try #require(try await OfflineQueue.setAside(directory: directory))
        #expect(aside.reason.contains("its log is damaged"))
        try await opened { queue, _ async throws in #expect(try await queue.verify().isSound) }
    }

    @Test func `a queue with a damaged log starts, reports what it dropped, and is not sound`() async throws {
        try await crashed(20)
        let frames = (try length - 32) / Self.frame
        try flip(at: 32 + Self.frame * (frames / 2) + 1000)
        try await opened { queue, store async throws in
            let kept = try await store.all().count
            #expect(kept > 0 && kept < 20)
            #expect(store.openingNotes.count == 1)
            #expect(
                store.openingNotes.first?.contains("\(20 - kept) commits") == true,
                "\(store.openingNotes)"
            )
            let report = try await queue.verify()
            #expect(report.findings.map(\.kind) == [.database] && !report.isSound, "\(report)")
            // Although it reports damage, the store accepts requests.
            try await store.enqueue(try new("next"))
        }
        try await opened { queue, store async throws in
            #expect(store.openingNotes == [], "the dropped commits are reported only once")
            #expect(try await queue.verify().isSound)
        }
    }

    /// A power cut may leave the last commit incomplete, so this is not damage.
    @Test func `an incomplete end of the log is dropped and reported, and is not damage`() async throws {
        try await crashed(20)
        try flip(at: try length - 1000)
        try await OfflineQueue.checkLeftoverLog(directory: directory)
        try await opened { queue, store async throws in
            #expect(try await store.all().count == 19)
            #expect(
                store.openingNotes == [
                    "the end of the database's log was incomplete; dropped 1 commit"
                ]
            )
            let report = try await queue.verify()
            #expect(report.findings.map(\.kind) == [.logTail] && report.isSound, "\(report)")
        }
    }

    /// If the dropped frames stayed in the log behind those of later commits, they would look like damage.
    @Test func `dropped commits are not reported as damage after the next crash`() async throws {
        try await crashed(20)
        let frames = (try length - 32) / Self.frame
        try flip(at: 32 + Self.frame * (frames / 2) + 1000)
        let again = scratch.file("again")
        let directory = directory
        try await opened { _, store async throws in
            try await store.enqueue(try new("next"))
            try shell("cp -a \(directory) \(again)")
        }
        try await OfflineQueue.checkLeftoverLog(directory: again)
        let store = try await SQLiteQueueStore(directory: again)
        #expect(store.openingNotes == [])
        await store.close()
    }

    @Test func `a damaged header of the log is reported, and the queue starts without its commits`()
        async throws
    {
        try await crashed(5)
        try flip(at: 20)
        #expect(
            await error { try await OfflineQueue.checkLeftoverLog(directory: directory) }?.code
                == .storeUnusable
        )
        let store = try await SQLiteQueueStore(directory: directory)
        #expect(store.openingNotes.count == 1)
        await store.close()
    }

    @Test(arguments: [4096, 8192]) func `a log of another program's database keeps the queue from starting`(
        pageSize: Int
    ) async throws {
        try await crashed(5)
        let other = try DatabaseQueue(path: scratch.file("other"))
        try await other.writeWithoutTransaction {
            try $0.execute(
                sql: """
                    PRAGMA page_size = \(pageSize); PRAGMA journal_mode = WAL; PRAGMA application_id = 7;
                    CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)
                    """
            )
        }
        try shell("cp \(scratch.file("other"))-wal \(log)")
        try other.close()
        let before = try shell("cd \(directory) && sha256sum queue.sqlite queue.sqlite-wal")
        #expect(await error { try await opened { _, _ async throws in } }?.code == .storeUnusable)
        #expect(try shell("cd \(directory) && sha256sum queue.sqlite queue.sqlite-wal") == before)
    }

    @Test func `damage in the log of an open queue is detected between two commits`() async throws {
        let store = try await SQLiteQueueStore(directory: directory)
        for number in 0..<10 { try await store.enqueue(try new("a\(number)")) }
        #expect(try await store.inspect().findings.isEmpty)
        // Damages the last commit. An incomplete last commit is normal only in the log of a store that is not open.
        try flip(at: try length - 1000)
        let kinds = try await store.inspect().findings.map(\.kind)
        #expect(kinds.contains(.database), "\(kinds)")
        await store.close()
    }
}
