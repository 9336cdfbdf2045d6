internal import Dispatch
internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// The removal of stalled uploads when a limit is reached.
@Suite(.timeLimit(.minutes(5))) struct StalledBodiesTests {
    private let clock = ManualClock()

    @Test func `stalled uploads are removed only if that frees enough bytes, and only as many as needed`()
        async throws
    {
        let bodies = StagedBodies(spool: BodySpool(files: SimulatedSpoolFiles()), clock: clock)
        for id in ["first", "second", "third"] {
            try await bodies.begin(id, limit: 1000)
            try await bodies.append(Data(count: 100), to: id, at: 0)
            clock.advance(by: .seconds(1))
        }
        #expect(await !bodies.removeStalled(freeing: 1), "nothing is stalled yet")
        clock.advance(by: .seconds(10))
        #expect(await !bodies.removeStalled(freeing: 301))
        #expect(await !bodies.removeStalled(freeing: 201, except: "second"))
        #expect(await bodies.count == 3)
        #expect(await bodies.removeStalled(freeing: 101, except: "first"))
        #expect(await bodies.list().map(\.id) == ["first"])
        try await bodies.append(Data(), to: "first", at: 100)
        #expect(await !bodies.removeStalled(freeing: 1))
    }

    @Test func `every decrease of the total size of uploads is reported`() async throws {
        let releases = Recorder<Void>()
        let bodies = StagedBodies(
            spool: BodySpool(files: SimulatedSpoolFiles()),
            clock: clock,
            onRelease: { releases.record(()) }
        )
        for id in ["removed", "finished", "refused", "idle"] {
            try await bodies.begin(id, limit: 1)
            try await bodies.append(Data(count: 1), to: id, at: 0)
        }
        #expect(releases.values.isEmpty)
        await bodies.remove("removed")
        #expect(releases.values.count == 1)
        _ = try await bodies.finish("finished", size: 1)
        #expect(releases.values.count == 2)
        await #expect(throws: QueueError.self) {
            try await bodies.append(Data(count: 1), to: "refused", at: 1)
        }
        #expect(releases.values.count == 3)
        try await clock.sleeps.waitForLast { $0 == .seconds(600) }
        clock.advance(by: .seconds(600))
        try await releases.wait { $0.count == 4 }
    }

    @Test func `the next upload to stall is the one that was idle longest`() async throws {
        let bodies = StagedBodies(spool: BodySpool(files: SimulatedSpoolFiles()), clock: clock)
        let start = clock.now
        #expect(await bodies.nextStall(after: start) == nil)
        try await bodies.begin("first", limit: 1000)
        clock.advance(by: .seconds(4))
        try await bodies.begin("second", limit: 1000)
        #expect(await bodies.nextStall(after: start) == start.advanced(by: .seconds(10)))
        clock.advance(by: .seconds(7))
        #expect(await bodies.nextStall(after: start) == start.advanced(by: .seconds(10)), "in the past")
        #expect(await bodies.nextStall(after: clock.now) == start.advanced(by: .seconds(14)))
        try await bodies.append(Data(), to: "second", at: 0)
        #expect(await bodies.nextStall(after: clock.now) == start.advanced(by: .seconds(21)))
    }

    @Test func `an upload that gets a piece while another one is being removed is kept`() async throws {
        let files = SlowlyRemovingFiles()
        let bodies = StagedBodies(spool: BodySpool(files: files), clock: clock)
        for id in ["a", "b"] {
            try await bodies.begin(id, limit: 1000)
            try await bodies.append(Data(count: 1), to: id, at: 0)
        }
        try await clock.sleeps.waitForLast { $0 == .seconds(600) }
        clock.advance(by: .seconds(600))
        try await offPool { files.isRemoving.wait() }
        let left = try #require(await bodies.list().first?.id)
        try await bodies.append(Data(), to: left, at: 1)
        // Permits the removal of both bodies.
        for _ in 0..<2 { files.mayRemove.signal() }
        try await clock.sleeps.waitForLast { $0 == .seconds(1200) }
        #expect(await bodies.list().map(\.id) == [left])
    }
}

/// A spool's directory whose files are removed only when the test permits it.
private struct SlowlyRemovingFiles: SpoolFiles {
    let inner = SimulatedSpoolFiles()
    let isRemoving = DispatchSemaphore(value: 0)
    let mayRemove = DispatchSemaphore(value: 0)

    var path: String { inner.path }

    func remove(_ name: String) throws(SystemError) {
        isRemoving.signal()
        mayRemove.wait()
        try inner.remove(name)
    }

    func inode() throws(SystemError) -> Inode? { try inner.inode() }
    func create(_ name: String) throws(SystemError) -> any SpoolFile { try inner.create(name) }
    func open(_ name: String) throws(SystemError) -> any SpoolFile { try inner.open(name) }
    func openExternal(_ path: String) throws(SystemError) -> any SpoolFile { try inner.openExternal(path) }
    func rename(_ name: String, to newName: String) throws(SystemError) {
        try inner.rename(name, to: newName)
    }
    func syncDirectory() throws(SystemError) { try inner.syncDirectory() }
    func names() throws(SystemError) -> [String] { try inner.names() }
    func freeBytes() throws(SystemError) -> Int64 { try inner.freeBytes() }
}
