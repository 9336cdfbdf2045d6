internal import Foundation
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// Stores whose files are removed, moved or replaced while they are open.
@Suite(.timeLimit(.minutes(5))) struct StoreLocationTests {
    private let scratch = try! ScratchDirectory()
    private var path: String { scratch.file("state") }

    enum Change: String, CaseIterable, CustomTestStringConvertible {
        case removeDirectory, moveDirectory, replaceDirectory, replaceByCopy, removeLock, replaceLock,
            removeDatabase,
            replaceDatabase, removeLog, removeSpool, replaceSpool

        var testDescription: String { rawValue }

        var command: String {
            switch self {
            case .removeDirectory: "rm -rf state"
            case .moveDirectory: "mv state away"
            case .replaceDirectory: "mv state away && mkdir -m 700 state"
            case .replaceByCopy: "cp -a state copy && mv state away && mv copy state"
            case .removeLock: "rm state/queue.lock"
            case .replaceLock: "cp -a state/queue.lock l && mv l state/queue.lock"
            case .removeDatabase: "rm state/queue.sqlite"
            case .replaceDatabase: "cp -a state/queue.sqlite d && mv d state/queue.sqlite"
            case .removeLog: "rm state/queue.sqlite-wal"
            case .removeSpool: "rm -rf state/spool"
            case .replaceSpool: "rm -rf state/spool && mkdir -m 700 state/spool"
            }
        }

        /// The path and the problem that the error message must contain.
        var words: (path: String, problem: String) {
            switch self {
            case .removeDirectory, .moveDirectory: ("state`", "was removed or moved")
            case .replaceDirectory, .replaceByCopy: ("state`", "was replaced")
            case .removeLock: ("queue.lock`", "was removed or moved")
            case .replaceLock: ("queue.lock`", "was replaced")
            case .removeDatabase: ("queue.sqlite`", "was removed or moved")
            case .replaceDatabase: ("queue.sqlite`", "was replaced")
            case .removeLog: ("queue.sqlite-wal`", "was removed or moved")
            case .removeSpool: ("spool`", "was removed or moved")
            case .replaceSpool: ("spool`", "was replaced")
            }
        }
    }

    private func error(_ body: () async throws -> Void) async -> QueueError? {
        do {
            try await body()
            return nil
        } catch {
            return error as? QueueError
        }
    }

    @Test(arguments: Change.allCases) func `a commit to a database that was moved is not accepted`(
        change: Change
    )
        async throws
    {
        let store = try await SQLiteQueueStore(directory: path)
        try await store.enqueue(try new("before"))
        try await store.check()
        try shell("cd \(scratch.path) && \(change.command)")
        let refusal = await error { try await store.enqueue(try new("after")) }
        #expect(refusal?.code == .storeReplaced)
        let words = change.words
        #expect(refusal?.message.contains(words.path) == true, "\(refusal?.message ?? "")")
        #expect(refusal?.message.contains(words.problem) == true, "\(refusal?.message ?? "")")
        #expect(await error { try await store.enqueue(try new("later")) }?.code == .storeReplaced)
        #expect(await error { try await store.check() }?.code == .storeReplaced)
        await store.close()
    }

    @Test(arguments: Change.allCases) func `location checks detect a change without a commit`(change: Change)
        async throws
    {
        let store = try await SQLiteQueueStore(directory: path)
        try shell("cd \(scratch.path) && \(change.command)")
        #expect(await error { try await store.check() }?.code == .storeReplaced)
        #expect(await error { try await store.enqueue(try new("after")) }?.code == .storeReplaced)
        await store.close()
    }

    @Test func `a check of the location after close does not report the removed log`() async throws {
        let store = try await SQLiteQueueStore(directory: path)
        try await store.enqueue(try new("a"))
        await store.close()
        try #require(try shell("ls \(path)").contains("queue.sqlite-wal") == false)
        #expect(await error { try await store.check() } == nil)
    }

    @Test func `a running queue fails within seconds after its files were moved, even without a write`()
        async throws
    {
        let queue = try await OfflineQueue(
            configuration: OfflineQueue.Configuration(directory: path),
            sender: FakeSender(),
            gate: FakeGate()
        )
        try await queue.start()
        try shell("rm -rf \(path)")
        let failure = await queue.failures.first { _ in true }
        #expect(failure?.code == .storeReplaced)
        await queue.stop()
    }

    @Test func `a store that replaces an open one is not changed`() async throws {
        let store = try await SQLiteQueueStore(directory: path)
        try await store.enqueue(try new("first"))
        // The request of the copy is only in the copy's log, not yet in its database.
        try shell("cd \(scratch.path) && cp -a state copy && mv state away && mv copy state")
        let before = try shell("cd \(path) && sha256sum queue.sqlite queue.sqlite-wal")
        _ = await error { try await store.enqueue(try new("second")) }
        await store.close()
        #expect(try shell("cd \(path) && sha256sum queue.sqlite queue.sqlite-wal") == before)
        let copy = try await SQLiteQueueStore(directory: path)
        #expect(try await copy.states().keys.sorted() == ["first"])
        await copy.close()
    }

    @Test func `a removed lock file admits no second owner`() async throws {
        let store = try await SQLiteQueueStore(directory: path)
        try shell("rm \(path)/queue.lock")
        #expect(await error { _ = try await SQLiteQueueStore(directory: path) }?.code == .alreadyOwned)
        #expect(try shell("ls \(path)").contains("queue.lock") == false, "no new lock file")
        await store.close()
        let next = try await SQLiteQueueStore(directory: path)
        await next.close()
    }

    @Test func `a replaced lock file admits no second owner`() async throws {
        let store = try await SQLiteQueueStore(directory: path)
        try shell("cd \(path) && cp -a queue.lock copy && mv copy queue.lock")
        let refusal = await error { _ = try await SQLiteQueueStore(directory: path) }
        #expect(refusal?.code == .alreadyOwned && refusal?.ownerPID == getpid())
        await store.close()
    }
}
