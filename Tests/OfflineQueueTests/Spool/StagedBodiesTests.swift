internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// Uploads: bodies that a client sends in several calls.
@Suite(.timeLimit(.minutes(5))) struct StagedBodiesTests {
    private let files = SimulatedSpoolFiles()
    private let clock = ManualClock()
    private let spool: BodySpool
    private let bodies: StagedBodies<ManualClock>

    init() {
        spool = BodySpool(files: files)
        bodies = StagedBodies(spool: spool, clock: clock)
    }

    private func error(_ body: () async throws -> Void) async -> QueueError? {
        do { try await body() } catch { return error as? QueueError }
        return nil
    }

    @Test func `pieces become one body`() async throws {
        #expect(try await bodies.begin("a", limit: 1000) == 0)
        #expect(try await bodies.append(Data("hello ".utf8), to: "a", at: 0) == 6)
        #expect(try await bodies.append(Data(), to: "a", at: 6) == 6)
        #expect(try await bodies.append(Data("world".utf8), to: "a", at: 6) == 11)
        let body = try await bodies.finish("a", size: 11).body
        #expect(try await spool.open(body).content() == Data("hello world".utf8))
        #expect(body.size == 11)
    }

    @Test func `a wrong offset is refused with the expected one and changes nothing`() async throws {
        try await bodies.begin("a", limit: 1000)
        try await bodies.append(Data("hello".utf8), to: "a", at: 0)
        for offset in [0, 4, 6, -1, .max] as [Int64] {
            let error = await error { try await bodies.append(Data("hello".utf8), to: "a", at: offset) }
            #expect(error?.code == .wrongOffset)
            #expect(error?.offset == 5)
        }
        #expect(await error { _ = try await bodies.finish("a", size: 10) }?.offset == 5)
        let body = try await bodies.finish("a", size: 5).body
        #expect(try await spool.open(body).content() == Data("hello".utf8))
    }

    @Test func `a client that received no response starts again and continues the body`() async throws {
        try await bodies.begin("a", limit: 1000)
        try await bodies.append(Data("hello".utf8), to: "a", at: 0)
        #expect(try await bodies.begin("a", limit: 1000) == 5)
        #expect(await bodies.count == 1)
    }

    @Test func `a user with a quota can have a quarter of the uploads`() async throws {
        let user = Submitter(user: 1000, quota: UserQuota())
        for number in 0..<16 { try await bodies.begin("\(number)", limit: 1000, by: user) }
        #expect(await error { try await bodies.begin("16", limit: 1000, by: user) }?.code == .quotaExceeded)
        #expect(try await bodies.begin("0", limit: 1000, by: user) == 0, "it continues")
        try await bodies.begin("other", limit: 1000, by: Submitter(user: 1001, quota: UserQuota()))
        try await bodies.begin("root", limit: 1000, by: Submitter(user: 1000))
    }

    @Test func `a finished body counts against the quota of its user until it is released`() async throws {
        var quota = UserQuota()
        quota.stagedBytes = 10
        let user = Submitter(user: 1000, quota: quota)
        for id in ["a", "b"] { try await bodies.begin(id, limit: 1000, by: user) }
        try await bodies.append(Data(count: 7), to: "a", at: 0, by: user)
        let upload = try await bodies.finish("a", size: 7, by: user)
        let refused = await error { try await bodies.append(Data(count: 4), to: "b", at: 0, by: user) }
        #expect(refused?.code == .quotaExceeded)
        #expect(await bodies.byteCount == 0, "only the quota counts it")
        await bodies.release([upload])
        #expect(try await bodies.append(Data(count: 4), to: "b", at: 0, by: user) == 4)
    }

    @Test func `bodies of waiting requests count like uploads`() async throws {
        var quota = UserQuota()
        quota.stagedBytes = 20
        let user = Submitter(user: 1000, quota: quota)
        let (small, large) = (try await spool.store(Data(count: 1)), try await spool.store(Data(count: 6)))
        try await bodies.begin("a", limit: 1000, by: user)
        var held: [HeldBody] = []
        for _ in 0..<15 { held.append(try await bodies.hold(small, by: user)) }
        #expect(await error { _ = try await bodies.hold(small, by: user) }?.code == .quotaExceeded)
        #expect(await error { try await bodies.begin("b", limit: 1000, by: user) }?.code == .quotaExceeded)
        await bodies.release([held.removeLast()])
        #expect(await error { _ = try await bodies.hold(large, by: user) } == nil, "20 bytes")
        let piece = await error { try await bodies.append(Data(count: 1), to: "a", at: 0, by: user) }
        #expect(piece?.code == .quotaExceeded)
        _ = try await bodies.hold(large, by: Submitter(user: 1000))
        _ = try await bodies.hold(large, by: nil)
    }

    @Test func `a body can be finished only once`() async throws {
        try await bodies.begin("a", limit: 1000)
        _ = try await bodies.finish("a", size: 0)
        #expect(await error { _ = try await bodies.finish("a", size: 0) }?.code == .unknownStagedBody)
        #expect(await error { try await bodies.append(Data(), to: "a", at: 0) }?.code == .unknownStagedBody)
        #expect(try await bodies.begin("a", limit: 1000) == 0)
    }

    @Test func `concurrent pieces keep their order, and the same piece is accepted once`() async throws {
        try await bodies.begin("a", limit: 1000)
        let pieces = (0..<100).map { Data(repeating: UInt8($0), count: 10) }
        let refused = await withTaskGroup(of: Int.self) { [bodies] group in
            for _ in 0..<2 {
                group.addTask {
                    var (offset, refused) = (0 as Int64, 0)
                    for piece in pieces {
                        do { try await bodies.append(piece, to: "a", at: offset) } catch { refused += 1 }
                        offset += 10
                    }
                    return refused
                }
            }
            return await group.reduce(0, +)
        }
        #expect(refused == 100)
        let body = try await bodies.finish("a", size: 1000).body
        #expect(try await spool.open(body).content() == Data(pieces.joined()))
    }

    @Test func `the number of uploads is limited`() async throws {
        for number in 0..<64 { try await bodies.begin("\(number)", limit: 1000) }
        #expect(await error { try await bodies.begin("one more", limit: 1000) }?.code == .tooManyStagedBodies)
        #expect(try await bodies.begin("7", limit: 1000) == 0)
        await bodies.remove("7")
        try await bodies.begin("one more", limit: 1000)
        await bodies.removeAll()
        #expect(await bodies.count == 0)
    }

    @Test
    func `at the maximum number of uploads, the longest idle one is removed after ten seconds`()
        async throws
    {
        for number in 0..<64 { try await bodies.begin("\(number)", limit: 1000) }
        clock.advance(by: .seconds(5))
        try await bodies.append(Data(count: 1), to: "0", at: 0)
        clock.advance(by: .milliseconds(4999))
        let early = await error { try await bodies.begin("early", limit: 1000) }
        #expect(early?.code == .tooManyStagedBodies)
        clock.advance(by: .milliseconds(1))
        try await bodies.begin("late", limit: 1000)
        let ids = await bodies.list().map(\.id)
        #expect(ids.count == 64 && ids.contains("0") && ids.contains("late"))
    }

    /// A user with a quota.
    private func user(_ id: UInt32) -> Submitter { Submitter(user: id, quota: UserQuota()) }

    @Test func `the longest stalled upload of a user makes room for another one of the same user`()
        async throws
    {
        try await bodies.begin("other", limit: 1000, by: user(1001))
        for number in 0..<16 {
            try await bodies.begin("\(number)", limit: 1000, by: user(1000))
            clock.advance(by: .milliseconds(1))
        }
        clock.advance(by: .milliseconds(9983))
        #expect(
            await error { try await bodies.begin("early", limit: 1000, by: user(1000)) }?.code
                == .quotaExceeded
        )
        clock.advance(by: .milliseconds(1))
        try await bodies.begin("late", limit: 1000, by: user(1000))
        let refused = await error { try await bodies.begin("more", limit: 1000, by: user(1000)) }
        let ids = Set(await bodies.list().map(\.id))
        #expect(ids == Set((1..<16).map { "\($0)" } + ["other", "late"]) && refused?.code == .quotaExceeded)
    }

    @Test func `users with quotas leave eight uploads, and make room for each other only when stalled`()
        async throws
    {
        for id in 0..<56 { try await bodies.begin("\(id)", limit: 1000, by: user(1000 + UInt32(id) / 14)) }
        let refused = await error { try await bodies.begin("user", limit: 1000, by: user(2000)) }
        #expect(refused?.code == .tooManyStagedBodies)
        #expect(refused?.message == "the maximum of 56 uploads of users without full access is reached")
        for id in 0..<8 { try await bodies.begin("root-\(id)", limit: 1000, by: Submitter(user: 0)) }
        clock.advance(by: .seconds(10))
        try await bodies.begin("user", limit: 1000, by: user(2000))
        let ids = Set(await bodies.list().map(\.id))
        #expect(ids.count == 64 && ids.contains("user") && (0..<8).allSatisfy { ids.contains("root-\($0)") })
    }

    @Test func `uploads are listed with their sizes, and a removed one is unknown`() async throws {
        try await bodies.begin("b", limit: 1000)
        try await bodies.begin("a", limit: 1000)
        try await bodies.append(Data(count: 7), to: "b", at: 0)
        clock.advance(by: .seconds(3))
        #expect(
            await bodies.list() == [
                StagedBody(id: "a", bytes: 0, idle: .seconds(3)),
                StagedBody(id: "b", bytes: 7, idle: .seconds(3)),
            ]
        )
        #expect(await bodies.remove("b")?.bytes == 7)
        #expect(await bodies.remove("b") == nil)
        #expect(files.disk.names.isEmpty)
        let late = await error { try await bodies.append(Data(count: 1), to: "b", at: 7) }
        #expect(late?.code == .unknownStagedBody)
    }

    @Test func `a body over the limit is discarded`() async throws {
        try await bodies.begin("a", limit: 1000)
        try await bodies.append(Data(count: 1000), to: "a", at: 0)
        #expect(
            await error { try await bodies.append(Data(count: 1), to: "a", at: 1000) }?.code == .bodyTooLarge
        )
        #expect(await bodies.count == 0)
        #expect(files.disk.names.isEmpty)
    }

    @Test func `a body that cannot be written is discarded, and the next one is accepted`() async throws {
        let files = SimulatedSpoolFiles(fault: .init(failingCall: 2, errno: ENOSPC))
        let bodies = StagedBodies(spool: BodySpool(files: files), clock: clock)
        try await bodies.begin("a", limit: 1000)
        let error = await error { try await bodies.append(Data(count: 1), to: "a", at: 0) }
        #expect(error?.code == .insufficientSpace)
        #expect(await bodies.count == 0)
        #expect(files.disk.names.isEmpty)
        try await bodies.begin("a", limit: 1000)
        try await bodies.append(Data(count: 1), to: "a", at: 0)
        #expect(try await bodies.finish("a", size: 1).body.size == 1)
    }

    @Test func `an upload is removed after ten minutes without a call, and not before`() async throws {
        try await bodies.begin("a", limit: 1000)
        try await bodies.append(Data(count: 1), to: "a", at: 0)
        try await clock.sleeps.waitForLast { $0 == .seconds(600) }
        clock.advance(by: .seconds(599))
        try await bodies.append(Data(count: 1), to: "a", at: 1)
        clock.advance(by: .seconds(1))
        // When the timer fired, there had been a recent call, so the task sleeps again.
        try await clock.sleeps.waitForLast { $0 == .seconds(599 + 600) }
        #expect(await bodies.count == 1)
        #expect(files.disk.names.count == 1)
        clock.advance(by: .seconds(599))
        try await files.log.waitForLast { $0 == "remove" }
        #expect(await bodies.count == 0)
        #expect(files.disk.names.isEmpty)
    }

    @Test func `each body has its own idle timeout`() async throws {
        try await bodies.begin("a", limit: 1000)
        try await clock.sleeps.waitForLast { $0 == .seconds(600) }
        clock.advance(by: .seconds(300))
        try await bodies.begin("b", limit: 1000)
        clock.advance(by: .seconds(300))
        try await clock.sleeps.waitForLast { $0 == .seconds(900) }
        #expect(await error { try await bodies.append(Data(), to: "a", at: 0) }?.code == .unknownStagedBody)
        try await bodies.append(Data(), to: "b", at: 0)
    }

    @Test func `releasing StagedBodies removes the unfinished bodies`() async throws {
        let files = SimulatedSpoolFiles()
        do {
            let bodies = StagedBodies(spool: BodySpool(files: files), clock: clock)
            try await bodies.begin("a", limit: 1000)
            try await bodies.append(Data(count: 1), to: "a", at: 0)
        }
        try await files.log.waitForLast { $0 == "remove" }
    }

    @Test func `pieces that are appended without waiting keep their order`() async throws {
        let directory = TemporaryDirectory()
        let spool = try await BodySpool.opening(directory.path)
        let pieces = (0..<200).map { Data(repeating: UInt8($0), count: 100 + $0) }
        let whole = try await spool.store(pieces.reduce(Data(), +))
        for _ in 0..<20 {
            let staged = StagedBodies(spool: spool, clock: ContinuousClock())
            try await staged.begin("a", limit: 1 << 20)
            try await withThrowingTaskGroup { group in
                var offset: Int64 = 0
                for piece in pieces {
                    let start = offset
                    group.addTask {
                        while true {
                            do throws(QueueError) {
                                _ = try await staged.append(piece, to: "a", at: start)
                                return
                            } catch { if error.code != .wrongOffset { throw error } }
                            // Lets the tasks of earlier pieces run.
                            await Task.yield()
                        }
                    }
                    offset += Int64(piece.count)
                }
                try await group.waitForAll()
            }
            #expect(try await staged.finish("a", size: whole.size).body.digest == whole.digest)
        }
    }
}
