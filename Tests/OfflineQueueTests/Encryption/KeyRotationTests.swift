internal import Foundation
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// The conversion of stored requests to another key.
@Suite(.timeLimit(.minutes(5))) struct KeyRotationTests {
    private let directory = TemporaryDirectory(marker: "encrypted")
    private let keys: TestKeys

    init() throws { keys = try TestKeys() }

    @Test func `a queue that gets a key encrypts its requests, and no plaintext remains`() async throws {
        let plain = try await directory.openEncrypted(in: keys)
        try await Marked.fill(plain)
        let before = try await plain.allDetails()
        await plain.close()
        #expect(try directory.found(Marked.texts) == Set(Marked.texts))

        let store = try await directory.openEncrypted(TestKeys.first, in: keys)
        let unsealed = try await store.statistics().encryption
        #expect(unsealed.map(\.isCurrent) == [false, true] && unsealed.map(\.requests) == [before.count, 0])
        try await store.resealAll()
        #expect(try await store.allDetails() == before)
        let use = try await store.statistics().encryption
        #expect(use.map(\.requests) == [before.count] && use.allSatisfy { $0.isCurrent && $0.isAvailable })
        #expect(try await store.inspect().findings == [])
        await store.close()
        #expect(try directory.found(Marked.texts) == [])
    }

    @Test func `a body that an attempt is about to read is converted later`() async throws {
        let plain = try await directory.openEncrypted(in: keys)
        try await plain.enqueue(try await Marked.request("large", in: plain.spool))
        await plain.close()
        let store = try await directory.openEncrypted(TestKeys.first, in: keys)
        let claimed = try #require(try await store.claimAll().first)
        let next = try await store.reseal(after: ResealCursor())
        #expect(next?.postponed == 1)
        guard case .spooled(let body) = claimed.body else { return #expect(Bool(false), "not spooled") }
        #expect(try await store.spool.open(body).content() == Marked.spooled)
        try await store.conclude(claimed, .retry(countsAsAttempt: true))
        try await store.resealAll()
        #expect(try directory.found(["spooled-7f3a"]) == [])
        guard case .spooled(let copy) = try await store.claimAll().first?.body else {
            return #expect(Bool(false), "not spooled")
        }
        #expect(try await store.spool.open(copy).content() == Marked.spooled)
        await store.close()
    }

    @Test func `after a rotation the old key is no longer needed`() async throws {
        let store = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await Marked.fill(store)
        let before = try await store.allDetails()
        let files = try FileManager.default.contentsOfDirectory(atPath: "\(directory.path)/spool").sorted()
        await store.close()
        let both = try await directory.openEncrypted(TestKeys.second, TestKeys.first, in: keys)
        try await both.resealAll()
        #expect(try await both.statistics().encryption.map(\.isCurrent) == [true])
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: "\(directory.path)/spool").sorted() == files
        )
        await both.close()
        let rotated = try await directory.openEncrypted(TestKeys.second, in: keys)
        #expect(try await rotated.allDetails() == before)
        #expect(try await rotated.inspect().findings == [])
        await rotated.close()
    }

    @Test func `a started queue converts its requests in the background`() async throws {
        let plain = try await directory.openEncrypted(in: keys)
        try await plain.enqueue(try await Marked.request("a"))
        await plain.close()
        let signal = ChangeSignal()
        var settings = StoreSettings()
        settings.encryptionKeyFile = try keys.write(TestKeys.first)
        let store = try await SQLiteQueueStore(directory: directory.path, settings: settings)
        let queue = OfflineQueue(
            configuration: OfflineQueue.Configuration(directory: directory.path),
            store: ObservedStore(inner: store, signal: signal),
            sender: FakeSender(),
            gate: FakeGate()
        )
        try await queue.start()
        try await signal.until { try await store.statistics().encryption.map(\.isCurrent) == [true] }
        await queue.stop()
    }
}
