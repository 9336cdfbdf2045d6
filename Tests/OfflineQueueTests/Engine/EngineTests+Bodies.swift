internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

// Tests how the engine stores, sends and removes bodies.

extension EngineTests {
    private func spooled() -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: "\(directory.path)/spool")) ?? []
    }

    @Test func `a large body is sent from its file, which is removed after delivery`() async throws {
        let bytes = Data((0..<200_000).map { UInt8($0 % 251) })
        let received = Lock<[Data?]>([])
        let sender = FakeSender { attempt in
            if case .file(let body) = attempt.body { received.withLock { $0.append(try? body.content()) } }
            return .status(200)
        }
        let queue = try await directory.openQueue(sender, signal: changes, isStarted: false)
        _ = try await queue.enqueue(.post(body: .data(bytes)), options: options("a"))
        #expect(spooled().count == 1)
        try await queue.start()
        #expect(try await queue.result(of: "a")?.summary.state == .delivered)
        #expect(received.withLock { $0 } == [bytes])
        try await changes.until { spooled().isEmpty }
        await queue.stop()
    }

    @Test(arguments: ["missing", "changed"])
    func `a changed body makes its request dead, and the lane continues`(how: String)
        async throws
    {
        let sender = FakeSender { _ in .status(200) }
        let queue = try await directory.openQueue(sender, signal: changes, isStarted: false)
        let inOrder = { (id: String) in EnqueueOptions(isFIFO: true, id: id) }
        _ = try await queue.enqueue(.post("a", body: .data(Data(count: 100_000))), options: inOrder("a"))
        _ = try await queue.enqueue(.post("b"), options: inOrder("b"))
        let file = "\(directory.path)/spool/\(try #require(spooled().first))"
        if how == "missing" {
            try FileManager.default.removeItem(atPath: file)
        } else {
            try Data(repeating: 1, count: 100_000).write(to: URL(filePath: file))
        }
        try await queue.start()
        #expect(try await queue.result(of: "b")?.summary.state == .delivered)
        let dead = try #require(try await queue.request("a")).summary
        #expect(dead.state == .dead && dead.lastError?.contains(how) == true)
        #expect(sender.attempts.map(\.id) == ["b"])
        await queue.stop()
    }

    @Test func `a small body changed in the database is not sent, and the lane continues`() async throws {
        let inOrder = { (id: String) in EnqueueOptions(isFIFO: true, id: id) }
        let first = try await directory.openQueue(signal: changes, isStarted: false)
        _ = try await first.enqueue(.post("a"), options: inOrder("a"))
        _ = try await first.enqueue(.post("b"), options: inOrder("b"))
        await first.stop()
        try edit(
            directory,
            "UPDATE body SET bytes = zeroblob(length(bytes)) WHERE seq = (SELECT min(seq) FROM body)"
        )
        let sender = FakeSender { _ in .status(200) }
        let queue = try await directory.openQueue(sender, signal: changes)
        #expect(try await queue.result(of: "b")?.summary.state == .delivered)
        let dead = try #require(try await queue.request("a")).summary
        let reason = try #require(dead.lastError)
        #expect(dead.state == .dead)
        #expect(reason.contains("the queue's copy of the body was changed: its SHA-256 is"), "\(reason)")
        #expect(sender.attempts.map(\.id) == ["b"])
        await queue.stop()
    }

    @Test func `a body uploaded in pieces is sent as one body`() async throws {
        let sender = FakeSender()
        let queue = try await directory.openQueue(sender, signal: changes)
        #expect(try await queue.appendToBody("body", Data(count: 70_000), at: 0) == 70_000)
        let error = try await #require(throws: QueueError.self) {
            _ = try await queue.appendToBody("body", Data(count: 1), at: 5)
        }
        #expect(error.code == .wrongOffset && error.offset == 70_000)
        #expect(try await queue.appendToBody("body", Data(count: 10), at: 70_000) == 70_010)
        _ = try await queue.enqueue(.post(body: .staged(id: "body", size: 70_010)), options: options("a"))
        let attempt = await sender.nextAttempt()
        guard case .file(let body) = attempt.body else {
            Issue.record("the body is not sent from a file")
            return
        }
        #expect(try body.content() == Data(count: 70_010))
        sender.answer(attempt, .status(200))
        try await changes.until(queue) { $0[.delivered] == 1 }
        await queue.stop()
    }

    @Test func `a known id no longer needs its body`() async throws {
        let queue = try await directory.openQueue(signal: changes, isStarted: false)
        let scratch = try ScratchDirectory()
        try Data(count: 100_000).write(to: URL(fileURLWithPath: scratch.file("body")))
        _ = try await queue.appendToBody("pieces", Data(count: 1000), at: 0)
        let staged = QueueRequest.post(body: .staged(id: "pieces", size: 1000))
        #expect(try await queue.enqueue(staged, options: options("a")).outcome == .accepted)
        #expect(try await queue.enqueue(staged, options: options("a")).outcome == .known)
        let fromFile = QueueRequest.post(body: .file(path: scratch.file("body")))
        #expect(try await queue.enqueue(fromFile, options: options("b")).outcome == .accepted)
        unlink(scratch.file("body"))
        #expect(try await queue.enqueue(fromFile, options: options("b")).outcome == .known)
        await #expect(throws: QueueError.self) { try await queue.enqueue(staged, options: options("c")) }
        await queue.stop()
    }

    @Test func `uploads can use the capacity that requests do not use`() async throws {
        let queue = try await directory.openQueue(signal: changes, isStarted: false) {
            $0.limits.bytes = 200_000
            $0.limits.laneShare = 1
        }
        func upload(_ id: String, _ count: Int, at offset: Int64 = 0) async throws -> QueueError.Code? {
            do {
                _ = try await queue.appendToBody(id, Data(count: count), at: offset)
            } catch let error as QueueError {
                return error.code
            }
            return nil
        }
        #expect(try await upload("a", 150_000) == nil)
        #expect(try await upload("b", 50_001) == .queueFull)
        #expect(try await upload("b", 50_000) == nil)
        #expect(try await upload("a", 1, at: 150_000) == .queueFull)
        let statistics = try await queue.statistics()
        #expect(statistics.stagedBodies == 2 && statistics.stagedBytes == 200_000)
        #expect(try await upload("c", 1) == .queueFull)
        #expect(try await queue.removeStagedBody("a").bytes == 150_000)
        let accepted = try await queue.enqueue(.post(body: .staged(id: "b", size: 50_000)))
        #expect(accepted.outcome == .accepted)
        #expect(try await upload("c", 149_000) == nil)
        #expect(await queue.removeStagedBodies().map(\.id) == ["c"])
        await #expect(throws: QueueError.self) { _ = try await queue.removeStagedBody("c") }
        #expect(spooled().count == 1, "the accepted body")
        await queue.stop()
    }

    @Test(arguments: [false, true])
    func `a dropped request leaves no file`(isByFilter: Bool) async throws {
        let queue = try await directory.openQueue(signal: changes, isStarted: false)
        let large = QueueRequest.post(body: .data(Data(count: 100_000)))
        for id in ["a", "b"] { _ = try await queue.enqueue(large, options: options(id)) }
        #expect(spooled().count == 2)
        if isByFilter {
            #expect(try await queue.cancel(matching: RequestFilter()).done == 2)
        } else {
            #expect(try await queue.cancel(["a", "b"]) == [.done(.cancelled), .done(.cancelled)])
        }
        #expect(spooled().isEmpty)
        await queue.stop()
    }

    @Test func `a refused or known request leaves no file`() async throws {
        let queue = try await directory.openQueue(signal: changes, isStarted: false)
        let large = QueueRequest.post(body: .data(Data(count: 100_000)))
        await #expect(throws: QueueError.self) {
            _ = try await queue.enqueue(large, options: options("a") { $0.dependencies = ["nobody"] })
        }
        #expect(spooled().isEmpty)
        _ = try await queue.enqueue(large, options: options("a"))
        let kept = spooled()
        #expect(try await queue.enqueue(large, options: options("a")).outcome == .known)
        let other = QueueRequest.post(body: .data(Data(repeating: 1, count: 100_000)))
        let conflict = try await #require(throws: QueueError.self) {
            _ = try await queue.enqueue(other, options: options("a"))
        }
        #expect(conflict.code == .idConflict && conflict.message.contains("differs in: body;"))
        #expect(kept.count == 1 && spooled() == kept)
        let error = try await #require(throws: QueueError.self) {
            _ = try await queue.enqueue(.post(body: .file(path: "/nowhere")), options: options("b"))
        }
        #expect(error.code == .bodyFileUnusable)
        #expect(try await queue.counts[.pending] == 1)
        await queue.stop()
    }
}
