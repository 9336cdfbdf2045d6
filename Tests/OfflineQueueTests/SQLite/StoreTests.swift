internal import Foundation
internal import OfflineQueue
internal import Testing

@Suite struct StoreTests {
    private let directory = TemporaryDirectory()
    private let clock = TestStoreClock()

    @Test(arguments: [
        ("synchronous", "2"), ("journal_mode", "wal"), ("foreign_keys", "1"), ("busy_timeout", "10000"),
        ("journal_size_limit", "8388608"), ("application_id", "1853321589"), ("user_version", "1"),
    ])
    func `the writing connection has the settings that durability requires`(name: String, value: String)
        async throws
    {
        #expect(try await directory.openStore(clock: clock).pragma(name) == value)
    }

    @Test func `only the owner can access the directory and its files, with any umask`() async throws {
        let store = try await directory.openStore(clock: clock)
        _ = try await store.enqueue(try new())
        #expect(directory.permissions() == 0o700)
        for name in ["queue.sqlite", "queue.sqlite-wal", "queue.sqlite-shm", "queue.lock"] {
            #expect(directory.permissions(of: name) == 0o600, "\(name)")
        }
    }

    @Test func `a directory that others can access is restricted if it is empty and refused otherwise`()
        async throws
    {
        let files = FileManager.default
        let open = [FileAttributeKey.posixPermissions: 0o755]
        try files.createDirectory(
            atPath: directory.path,
            withIntermediateDirectories: false,
            attributes: open
        )
        try Data().write(to: URL(fileURLWithPath: "\(directory.path)/other"))
        let error = try await #require(throws: QueueError.self) {
            _ = try await directory.openStore(clock: clock)
        }
        #expect(error.code == .directoryUnusable && error.message.contains("contains `other` but no queue"))
        #expect(directory.permissions() == 0o755)
        try files.removeItem(atPath: "\(directory.path)/other")
        _ = try await directory.openStore(clock: clock)
        #expect(directory.permissions() == 0o700)
    }

    @Test func `a second owner is refused with the process id of the first`() async throws {
        let store = try await directory.openStore(clock: clock)
        let error = try await #require(throws: QueueError.self) {
            _ = try await directory.openStore(clock: clock)
        }
        #expect(error.code == .alreadyOwned)
        #expect(error.ownerPID == ProcessInfo.processInfo.processIdentifier)
        #expect(error.path == "\(directory.path)/queue.lock")
        await store.close()
        _ = try await directory.openStore(clock: clock)
    }

    @Test func `another program's database is not set aside`() async throws {
        let store = try await directory.openStore(clock: clock)
        await store.close()
        let path = "\(directory.path)/queue.sqlite"
        try Data("SQLite format 2, or something like it".utf8).write(to: URL(fileURLWithPath: path))
        let error = try await #require(throws: QueueError.self) {
            _ = try await directory.openStore(clock: clock)
        }
        #expect(error.code == .storeUnusable)
    }

    @Test(arguments: DiskFault.Kind.ofCommits)
    func `after a disk error the queue accepts no more requests`(kind: DiskFault.Kind) async throws {
        try DiskFault.install()
        let store = try await directory.openStore(clock: clock)
        _ = try await store.enqueue(try new("kept"))
        let fault = try DiskFault(kind, at: directory.path, first: 1, persists: true)
        let error = try await #require(throws: QueueError.self) {
            _ = try await store.enqueue(try new("refused"))
        }
        #expect(error.code == .storeFailed)
        fault.end()
        let later = try await #require(throws: QueueError.self) {
            _ = try await store.enqueue(try new("later"))
        }
        #expect(later.code == .storeFailed)
        await store.close()
        #expect(try await directory.openStore(clock: clock).states() == ["kept": .pending])
    }

    @Test func `64 producers share commits`() async throws {
        let store = try await directory.openStore(clock: clock)
        let before = store.commitDurations.count
        try await withThrowingTaskGroup { group in
            for index in 0..<640 {
                group.addTask { _ = try await store.enqueue(try new("\(index)")) }
            }
            try await group.waitForAll()
        }
        #expect(try await store.counts()[.pending] == 640)
        #expect(store.commitDurations.count - before < 320)
    }

    @Test func `a conclusion and the claim of the next request share a transaction`() async throws {
        let store = try await directory.openStore(clock: clock)
        let lane = try await store.enqueue(try new("a", isFIFO: true), try new("b", isFIFO: true))[0].lane.id
        let head = try await store.claim(1, of: lane).requests[0]
        let before = store.commitDurations.count
        let conclusion = Conclusion(
            sequence: head.sequence,
            token: head.lease.token,
            verdict: .delivered(status: 200)
        )
        let concluded = try await store.conclude([conclusion], claiming: [LaneClaim(lane: lane, limit: 1)])
        #expect(concluded.isCurrent == [true])
        #expect(concluded.claimed.map { $0.requests.map(\.id) } == [["b"]])
        #expect(store.commitDurations.count == before + 1)
        #expect(try await store.states() == ["a": .delivered, "b": .inflight])
    }
}
