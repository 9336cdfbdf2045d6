internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Synchronization
internal import Testing

@testable internal import OfflineQueue

/// Faults and concurrent operations during the conversion of a queue to an encryption key.
@Suite(.timeLimit(.minutes(5))) struct ConversionTests {
    private let directory = TemporaryDirectory(marker: "conversion")
    private let keys: TestKeys

    init() throws { keys = try TestKeys() }

    private static let marker = "plain-7f3a"
    private static let large = Data(String(repeating: "plain-7f3a ", count: 20_000).utf8)

    /// Fills a store without a key with requests whose bodies are files.
    private func fill(_ ids: String...) async throws {
        let store = try await directory.openEncrypted(in: keys)
        for id in ids {
            let request = QueueRequest(method: "POST", url: "http://example.com/\(id)", body: Self.large)
            let body = StoredBody.spooled(try await store.spool.store(Self.large))
            let options = EnqueueOptions(id: id)
            try await store.enqueue(try NewRequest(request, options: options, body: body, now: start.date))
        }
        await store.close()
    }

    private var bodyFiles: [String] {
        get throws {
            try FileManager.default.contentsOfDirectory(atPath: "\(directory.path)/spool").map {
                "\(directory.path)/spool/\($0)"
            }
        }
    }

    private func openStore(_ files: (any SpoolFiles)? = nil) async throws -> SQLiteQueueStore {
        var settings = StoreSettings()
        settings.encryptionKeyFile = try keys.write(TestKeys.first)
        return try await SQLiteQueueStore(directory: directory.path, settings: settings, files: files)
    }

    private func isConverted(_ store: any QueueStore) async throws -> Bool {
        try await store.statistics().encryption.map(\.isCurrent) == [true]
    }

    // MARK: Faults

    @Test func `a request whose body file is missing is encrypted, too`() async throws {
        try await fill("a")
        for file in try bodyFiles { try FileManager.default.removeItem(atPath: file) }
        let store = try await openStore()
        try await store.resealAll()
        #expect(try await isConverted(store))
        #expect(try await store.inspect().findings.map(\.kind) == [.bodyMissing])
        await store.close()
    }

    @Test func `a body file that was changed is encrypted, and is still recognized as changed`() async throws
    {
        try await fill("a")
        for file in try bodyFiles {
            try (Data(contentsOf: URL(filePath: file)) + Data("x".utf8)).write(to: URL(filePath: file))
        }
        let store = try await openStore()
        try await store.resealAll()
        #expect(try await isConverted(store))
        #expect(try directory.found([Self.marker]) == [])
        #expect(try await store.inspect().findings.map(\.kind) == [.bodyChanged])
        await store.close()
    }

    @Test func `a body in the database that was changed is encrypted, and is still recognized as changed`()
        async throws
    {
        let plain = try await directory.openEncrypted(in: keys)
        let body = Data("small".utf8)
        let request = QueueRequest(method: "POST", url: "http://example.com/a", body: body)
        let options = EnqueueOptions(id: "a")
        try await plain.enqueue(
            try NewRequest(request, options: options, body: .inline(body), now: start.date)
        )
        await plain.close()
        try edit(directory, "UPDATE body SET bytes = zeroblob(length(bytes))")
        let store = try await openStore()
        try await store.resealAll()
        #expect(try await isConverted(store))
        let report = try await store.inspect()
        #expect(report.findings.map(\.subject) == ["a"] && report.isDamaged)
        await store.close()
    }

    @Test func `a body for which the disk has no space is reported, and is encrypted when there is space`()
        async throws
    {
        try await fill("a")
        let files = FullFiles(inner: try SystemSpoolFiles.opening("\(directory.path)/spool"))
        let store = try await openStore(files)
        let (queue, signal) = queue(on: store)
        try await queue.start()
        let warning = await queue.warnings.first { _ in true }
        #expect(warning?.contains("not encrypted with the current key: the body cannot be stored") == true)
        #expect(try await !isConverted(store))
        files.isFull.store(false, ordering: .sequentiallyConsistent)
        try await signal.until { try await isConverted(store) }
        await queue.stop()
        #expect(try directory.found([Self.marker]) == [])
    }

    @Test(arguments: [true, false])
    func `an error of the conversion is reported, and the queue continues`(isSystemError: Bool) async throws {
        try await fill("a")
        let system = SystemError(call: "RAND_bytes", errno: 5)
        let error: any Error =
            isSystemError ? system : QueueError(.storeUnavailable, "a value cannot be encrypted")
        let failing = FailingConversion(inner: try await openStore(), error: error)
        let (queue, signal) = queue(on: failing)
        try await queue.start()
        let warning = await queue.warnings.first { _ in true }
        #expect(
            warning?.contains((error as? QueueError)?.message ?? "RAND_bytes") == true,
            "\(warning ?? "")"
        )
        try await signal.until { try await isConverted(failing) }
        let request = QueueRequest(method: "POST", url: "http://example.com/b", body: Data("b".utf8))
        let receipt = try await queue.enqueue(request)
        try await signal.until { try await failing.state(of: receipt.id) == .delivered }
        await queue.stop()
    }

    @Test func `a dead request that is retried during the conversion is encrypted in the same pass`()
        async throws
    {
        try await fill("a")
        let plain = try await directory.openEncrypted(in: keys)
        try await plain.conclude(try #require(try await plain.claimAll().first), .dead(reason: "HTTP 400"))
        await plain.close()
        let store = try await openStore()
        var cursor = try await store.reseal(after: ResealCursor())
        #expect(cursor?.table == .history)
        #expect(try await store.edit(.retry(newKey: false), ["a"]) == [.done(.pending)])
        while let place = cursor { cursor = try await store.reseal(after: place) }
        #expect(try await isConverted(store))
        await store.close()
    }

    /// Returns a queue that delivers every request, and repeats the conversion without a long wait.
    private func queue(on store: any QueueStore) -> (OfflineQueue, ChangeSignal) {
        let signal = ChangeSignal()
        var configuration = OfflineQueue.Configuration(directory: directory.path)
        configuration.resealInterval = .milliseconds(10)
        let queue = OfflineQueue(
            configuration: configuration,
            store: ObservedStore(inner: store, signal: signal),
            sender: FakeSender { $0.id == "a" ? .unreachable : .status(200) },
            gate: FakeGate()
        )
        return (queue, signal)
    }

    // MARK: Export

    /// The page of the export whose rows are read before the conversion, and whose files are opened after it.
    @Test(arguments: [1, 2])
    func `an export during a conversion contains every request`(page: Int) async throws {
        try await fill("a", "b")
        let store = try await openStore()
        let archive = InterruptedArchive(inner: store, call: page) { try await store.resealAll() }
        let queue = exporting(archive)
        let content = try ExportContent(try await queue.exported(limit: 100_000))
        #expect(content.bodies == ["a": Self.large, "b": Self.large])
        #expect(try await isConverted(store))
        await queue.stop()
    }

    @Test(arguments: [1, 2])
    func `a request that finishes during an export is not reported as damaged`(page: Int) async throws {
        try await fill("a", "b")
        let store = try await openStore()
        let archive = InterruptedArchive(inner: store, call: page) {
            _ = try await store.edit(.cancel, ["a"])
        }
        let queue = exporting(archive)
        var leftOut: [ExportPage.LeftOut] = []
        var (data, cursor): (Data, ExportCursor?) = (Data(), nil)
        var trailer = try ExportTrailer()
        repeat {
            let part = try await queue.exportPage(after: cursor, limit: 100_000)
            (data, leftOut, cursor) = (data + part.data, leftOut + part.leftOut, part.next)
            trailer.add(part.data)
        } while cursor != nil
        #expect(leftOut == [])
        #expect(try ExportContent(data + trailer.finish()).bodies == ["b": Self.large])
        await queue.stop()
    }

    private func exporting(_ store: any QueueStore) -> OfflineQueue {
        OfflineQueue(
            configuration: OfflineQueue.Configuration(directory: directory.path),
            store: store,
            sender: FakeSender(),
            gate: FakeGate()
        )
    }
}

/// The files of a spool on a disk that is full at first.
private final class FullFiles: SpoolFiles {
    let inner: SystemSpoolFiles
    let isFull = Atomic(true)

    init(inner: SystemSpoolFiles) { self.inner = inner }

    var path: String { inner.path }
    func inode() throws(SystemError) -> Inode? { try inner.inode() }
    func create(_ name: String) throws(SystemError) -> any SpoolFile { try inner.create(name) }
    func open(_ name: String) throws(SystemError) -> any SpoolFile { try inner.open(name) }
    func openExternal(_ path: String) throws(SystemError) -> any SpoolFile { try inner.openExternal(path) }
    func rename(_ name: String, to newName: String) throws(SystemError) {
        try inner.rename(name, to: newName)
    }
    func remove(_ name: String) throws(SystemError) { try inner.remove(name) }
    func syncDirectory() throws(SystemError) { try inner.syncDirectory() }
    func names() throws(SystemError) -> [String] { try inner.names() }

    func freeBytes() throws(SystemError) -> Int64 {
        isFull.load(ordering: .sequentiallyConsistent) ? 0 : try inner.freeBytes()
    }
}

/// A store whose conversion fails once.
private final class FailingConversion: WrappedStore {
    let inner: any QueueStore
    private let error: Lock<(any Error)?>

    init(inner: any QueueStore, error: any Error) {
        self.inner = inner
        self.error = Lock(error)
    }

    func reseal(after cursor: ResealCursor) async throws -> ResealCursor? {
        let error = error.withLock { error in
            defer { error = nil }
            return error
        }
        if let error { throw error }
        return try await inner.reseal(after: cursor)
    }
}

/// An archive that runs an operation after it has read the rows of one page, and before their bodies are opened.
private final class InterruptedArchive: WrappedArchive {
    let inner: any QueueStore
    private let call: Int
    private let operation: @Sendable () async throws -> Void
    private let calls = Atomic(0)

    init(inner: any QueueStore, call: Int, operation: @escaping @Sendable () async throws -> Void) {
        (self.inner, self.call, self.operation) = (inner, call, operation)
    }

    func rows(after cursor: ExportCursor, bytes: Int) async throws -> [ArchivedRow] {
        let rows = try await inner.archive.rows(after: cursor, bytes: bytes)
        if calls.wrappingAdd(1, ordering: .relaxed).newValue == call { try await operation() }
        return rows
    }
}
