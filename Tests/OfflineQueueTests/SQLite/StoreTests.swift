internal import Foundation
internal import OfflineQueue
internal import Testing

@Suite struct StoreTests {
    private let directory = TemporaryDirectory()
    private let clock = TestStoreClock()

    @Test func `accepted requests are stored after reopening`() async throws {
        let store = try await directory.openStore(clock: clock)
        _ = try await store.enqueue(try new("a", body: "first"), try new("b", method: "PUT"))
        await store.close()
        let reopened = try await directory.openStore(clock: clock)
        let lanes = try await reopened.restart()
        let batch = try await reopened.claim(8, of: try #require(lanes.first).id)
        #expect(batch.requests.map(\.id) == ["a", "b"])
        #expect(batch.requests[0].body == .inline(Data("first".utf8)))
        #expect(batch.requests[0].method == "POST")
    }

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

    @Test func `a stale lease cannot finish a request`() async throws {
        let store = try await directory.openStore(clock: clock)
        let lane = try await store.enqueue(try new("a"))[0].lane.id
        let request = try await store.claim(1, of: lane).requests[0]
        #expect(try await !store.conclude(request, .delivered(status: 200), token: "stale"))
        #expect(try await store.states() == ["a": .inflight])
        #expect(try await store.conclude(request, .delivered(status: 200)))
        #expect(try await !store.conclude(request, .dead(reason: "late")))
        #expect(try await store.states() == ["a": .delivered])
    }

    @Test func `a lease of an earlier run cannot finish a request of this run`() async throws {
        let first = try await directory.openStore(clock: clock)
        let lane = try await first.enqueue(try new("a"))[0].lane.id
        let old = try await first.claim(1, of: lane).requests[0]
        await first.close()
        let second = try await directory.openStore(clock: clock)
        try await second.recover(releasing: [])
        #expect(try await !second.conclude(old, .delivered(status: 200)))
        _ = try await second.claim(1, of: lane)
        #expect(try await !second.conclude(old, .delivered(status: 200)))
        #expect(try await second.states() == ["a": .inflight])
    }

    @Test func `a known id adds no second request, even after the first one finished`() async throws {
        let store = try await directory.openStore(clock: clock)
        let first = try await store.enqueue(try new("a"))[0]
        let again = try await store.enqueue(try new("a"))[0]
        #expect(first.outcome == .accepted && again.outcome == .known)
        #expect(again.idempotencyKey == first.idempotencyKey)
        let request = try await store.claim(8, of: first.lane.id).requests
        #expect(request.count == 1)
        _ = try await store.conclude(request[0], .delivered(status: 200))
        #expect(try await store.enqueue(try new("a"))[0].state == .delivered)
        #expect(try await store.counts()[.pending] == 0)
    }

    @Test func `a request in flight of a dead owner is pending again`() async throws {
        let store = try await directory.openStore(clock: clock)
        let lane = try await store.enqueue(try new("keyed"), try new("idempotent", method: "PUT"))[0].lane.id
        _ = try await store.claim(8, of: lane)
        await store.close()
        let reopened = try await directory.openStore(clock: clock)
        let lanes = try await reopened.restart()
        #expect(lanes.map(\.due) == [.zero])
        #expect(try await reopened.states() == ["keyed": .pending, "idempotent": .pending])
        #expect(try await reopened.all().map(\.attempts) == [1, 1])
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

    @Test func `a claim in a FIFO lane returns only the head, and only once`() async throws {
        let store = try await directory.openStore(clock: clock)
        let lane = try await store.enqueue(try new("a", isFIFO: true), try new("b", isFIFO: true))[0].lane.id
        let head = try await store.claim(8, of: lane).requests
        #expect(head.map(\.id) == ["a"])
        #expect(try await store.claim(8, of: lane).requests.isEmpty)
        _ = try await store.conclude(head[0], .retry(countsAsAttempt: true), delay: .seconds(5))
        let waiting = try await store.claim(8, of: lane)
        #expect(waiting.requests.isEmpty && waiting.due == .seconds(5))
        clock.advance(.seconds(5))
        let again = try await store.claim(8, of: lane).requests
        #expect(again.map(\.id) == ["a"])
        _ = try await store.conclude(again[0], .held(.auth))
        #expect(try await store.claim(8, of: lane).requests.isEmpty)
        let released = try await store.claim(8, of: lane, releasing: [.auth]).requests
        #expect(released.map(\.id) == ["a"])
        _ = try await store.conclude(released[0], .dead(reason: "HTTP 404"))
        #expect(try await store.claim(8, of: lane).requests.map(\.id) == ["b"])
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

    @Test func `a retry keeps the key`() async throws {
        let store = try await directory.openStore(clock: clock)
        let lane = try await store.enqueue(try new("a"))[0].lane.id
        let first = try await store.claim(1, of: lane).requests[0]
        _ = try await store.conclude(first, .retry(countsAsAttempt: true))
        await store.close()
        let second = try await directory.openStore(clock: clock).claim(1, of: lane).requests[0]
        #expect(first.key != nil)
        #expect(second.key == first.key)
    }

    @Test func `a clock that steps back delays no request`() async throws {
        let store = try await directory.openStore(clock: clock)
        let lane = try await store.enqueue(try new("a"))[0].lane.id
        clock.stepWall(.seconds(-365 * 86_400))
        #expect(try await store.restart().map(\.due) == [.zero])
        #expect(try await store.claim(1, of: lane).requests.map(\.id) == ["a"])
    }

    @Test func `a lane closed by its server stays closed after a restart`() async throws {
        let store = try await directory.openStore(clock: clock)
        let lane = try await store.enqueue(try new("a"))[0].lane.id
        let request = try await store.claim(1, of: lane).requests[0]
        let hour = Duration.seconds(3600)
        _ = try await store.conclude(request, .retry(countsAsAttempt: true), delay: hour, laneClosure: hour)
        await store.close()
        let record = try await directory.openStore(clock: clock).restart()[0]
        #expect(record.notBefore == hour)
        #expect(record.due == .seconds(900))
    }

    @Test func `the history keeps only the newest requests`() async throws {
        var settings = StoreSettings()
        settings.retention.doneCount = 3
        let store = try await directory.openStore(settings, clock: clock)
        for id in ["a", "b", "c", "d", "e"] {
            let lane = try await store.enqueue(try new(id))[0].lane.id
            try await store.conclude(try await store.claim(1, of: lane).requests[0], .delivered(status: 200))
            clock.advance(.seconds(1))
        }
        _ = try await store.expire()
        #expect(try await store.all().map(\.id) == ["e", "d", "c"])
    }

    @Test func `a call to a closed store throws instead of hanging`() async throws {
        let store = try await directory.openStore(clock: clock)
        await store.close()
        let error = try await #require(throws: QueueError.self) { _ = try await store.enqueue(try new()) }
        #expect(error.code == .stopped)
        await #expect(throws: QueueError.self) { _ = try await store.counts() }
    }
}
