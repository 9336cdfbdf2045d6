internal import Dispatch
internal import Foundation
internal import Testing

@testable internal import OfflineQueue

@Suite(.timeLimit(.minutes(1))) struct StoreReaderTests {
    private let directory = TemporaryDirectory()

    @Test func `the queue can be looked at while a change is being written`() async throws {
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
        // The commit waits for these reads, so a read that waited for the commit would never return.
        #expect(try await store.states() == ["a": .pending, "b": .pending])
        #expect(try await store.details(of: "a")?.summary.state == .pending)
        #expect(try await store.standings(of: ["a", "none"]).mapValues(\.state) == ["a": .pending])
        #expect(try await store.counts()[.pending] == 2)
        #expect(try await store.statistics().requests == 2)
        #expect(try await store.ids(beginningWith: "b", limit: 4) == ["b"])
        #expect(try await store.archive.room().requests > 0)
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
        let isAnswered = DispatchSemaphore(value: 0)
        let request = try new("a")
        async let change = store.write(rows: 1) { transaction in
            let accepted = try transaction.enqueue([request])
            isWriting.signal()
            // An answer that does not wait for the commit comes within this time.
            _ = isAnswered.wait(timeout: .now() + .milliseconds(500))
            return accepted.count
        }
        await DispatchQueue.global().run { isWriting.wait() }
        #expect(try await store.archive.known(["a", "c"]) == ["a"])
        isAnswered.signal()
        #expect(try await change == 1)
        await store.close()
    }

    @Test func `a closed store leaves no log behind, and reads nothing more`() async throws {
        let store = try await SQLiteQueueStore(directory: directory.path)
        _ = try await store.enqueue(try new("a"))
        #expect(try await store.states() == ["a": .pending])
        await store.close()
        #expect(!FileManager.default.fileExists(atPath: directory.path + "/queue.sqlite-wal"))
        await #expect(throws: QueueError.self) { try await store.counts() }
    }
}
