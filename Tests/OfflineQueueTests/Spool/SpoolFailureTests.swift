internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// A spool whose file system fails at each call, one after the other.
@Suite(.timeLimit(.minutes(5))) struct SpoolFailureTests {
    // Computed on each use. The leak checker would report the storage of a global `Data`, because `Data` keeps flag
    // bits in its pointer.
    private static var film: Data { Data(repeating: 7, count: 300_000) }

    /// The ways in which the spool stores a body.
    enum StoringMethod: CaseIterable, Sendable {
        case inMemory, inPieces, fromFile, byCloning

        func store(in spool: BodySpool) async throws(QueueError) -> SpooledBody {
            switch self {
            case .inMemory: return try await spool.store(SpoolFailureTests.film)
            case .fromFile, .byCloning: return try await spool.copy(path: "/film", limit: 1 << 20)
            case .inPieces:
                let writer = try spool.makeWriter(limit: 1 << 20)
                try await writer.append(SpoolFailureTests.film.prefix(100_000))
                try await writer.append(SpoolFailureTests.film.dropFirst(100_000))
                return try await writer.finish()
            }
        }
    }

    private func files(_ method: StoringMethod, _ fault: SimulatedSpoolFiles.Fault) -> SimulatedSpoolFiles {
        SimulatedSpoolFiles(
            foreign: ["/film": [[UInt8](Self.film)]],
            canClone: method == .byCloning,
            fault: fault
        )
    }

    @Test(arguments: StoringMethod.allCases, [EIO, ENOSPC, EDQUOT])
    func `a failed system call affects only one body`(method: StoringMethod, errno: CInt) async throws {
        var failures = 0
        for call in 1... {
            let files = files(method, .init(failingCall: call, errno: errno))
            let spool = BodySpool(files: files, reserve: 0)
            let first = await attempt(method, spool)
            guard files.hasFailed else { break }
            failures += first.error == nil ? 0 : 1
            if let error = first.error {
                try expect(error, errno, files)
                #expect(files.disk.names.isEmpty, "call \(call)")
            }
            try await expectWhole(try await method.store(in: spool), after: files)
            if let body = first.body { try await expectWhole(body, after: files) }
        }
        #expect(failures >= 5)
    }

    private func attempt(_ method: StoringMethod, _ spool: BodySpool) async -> (
        body: SpooledBody?, error: QueueError?
    ) {
        do { return (try await method.store(in: spool), nil) } catch { return (nil, error) }
    }

    private func expect(_ error: QueueError, _ errno: CInt, _ files: SimulatedSpoolFiles) throws {
        if error.code == .bodyFileUnusable { return #expect(error.path == "/film") }
        #expect(error.code == (errno == EIO ? .spoolFailed : .insufficientSpace))
        #expect(error.path == files.path)
        #expect(error.message.contains(files.path))
        #expect(error.message.contains(String(cString: strerror(errno))))
    }

    /// Expects that the body survives a power cut. It would not if the spool had only repeated a failed sync.
    private func expectWhole(_ body: SpooledBody, after files: SimulatedSpoolFiles) async throws {
        let survivors = SimulatedSpoolFiles(files.disk.afterPowerCut(.worst))
        #expect(try await BodySpool(files: survivors).open(body).content() == Self.film)
    }

    @Test(arguments: StoringMethod.allCases)
    func `a disk that becomes full keeps no part of the body`(method: StoringMethod) async throws {
        for capacity in [0, 1, 100_000, 299_999] {
            let files = files(method, .init(capacity: capacity))
            let error = await attempt(method, BodySpool(files: files, reserve: 0)).error
            #expect(error?.code == .insufficientSpace)
            #expect(files.disk.names.isEmpty)
        }
        #expect(
            await attempt(method, BodySpool(files: files(method, .init(capacity: 300_000)), reserve: 0)).error
                == nil
        )
    }

    @Test(arguments: StoringMethod.allCases)
    func `a body that would use the disk reserve is refused`(method: StoringMethod) async throws {
        let files = files(method, .init(capacity: 1_299_999))
        let error = await attempt(method, BodySpool(files: files, reserve: 1_000_000)).error
        #expect(error?.code == (method == .byCloning ? nil : .insufficientSpace))
        if error != nil { #expect(files.disk.names.isEmpty) }
        // A body whose length is known is refused before any byte is written.
        if method == .inMemory || method == .fromFile { #expect(!files.log.values.contains("write")) }
        let roomy = self.files(method, .init(capacity: 1_300_000))
        #expect(await attempt(method, BodySpool(files: roomy, reserve: 1_000_000)).error == nil)
    }

    @Test(.enabled(if: geteuid() == 0, "mounting a small file system needs root"))
    func `a real disk that becomes full keeps no part of the body`() async throws {
        let scratch = try ScratchDirectory()
        let files = try onSmallDisk(at: scratch.path) {
            Result { try SystemSpoolFiles.opening(scratch.path) }
        }
        let spool = BodySpool(files: try files.get(), reserve: 0)
        let small = try await spool.store(Data(count: 1000))
        await #expect {
            try await spool.store(Self.film)
        } throws: { error in
            (error as? QueueError)?.code == .insufficientSpace && (error as? QueueError)?.path == scratch.path
        }
        #expect(try files.get().names() == [small.name])
        #expect(await spool.verify(small) == nil)
        _ = try await spool.store(Data(count: 1000))
    }

    @Test func `files that cannot be removed are removed by the next start`() async throws {
        // The first call creates the file. Its first write and all later calls fail.
        let files = SimulatedSpoolFiles(fault: .init(powerCut: 2))
        await #expect(throws: QueueError.self) {
            try await BodySpool(files: files, reserve: 0).store(Self.film)
        }
        #expect(files.disk.names.count == 1)
        let healthy = SimulatedSpoolFiles(files.disk)
        #expect(try await BodySpool(files: healthy).sweep { _ in true } == 1)
        #expect(healthy.disk.names.isEmpty)
    }

    @Test func `a temporary read error of a body is not reported as a missing or changed body`() async throws
    {
        let files = SimulatedSpoolFiles()
        let body = try await BodySpool(files: files, reserve: 0).store(Self.film)
        for call in 1... {
            let failing = SimulatedSpoolFiles(files.disk, fault: .init(failingCall: call))
            let fault = await BodySpool(files: failing).verify(body)
            guard failing.hasFailed else { break }
            guard case .unreadable? = fault else {
                Issue.record("call \(call): \(String(describing: fault))")
                continue
            }
        }
    }
}
