internal import Foundation
internal import Testing

@testable internal import OfflineQueue

/// The salvage of an encrypted store.
@Suite(.timeLimit(.minutes(5))) struct EncryptedSalvageTests {
    private let directory = TemporaryDirectory(marker: "encrypted")
    private let keys: TestKeys

    init() throws { keys = try TestKeys() }

    @Test func `salvage exports encrypted requests only with their key, and keeps the store`() async throws {
        let store = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await store.enqueue(try await Marked.request("a"))
        try await store.enqueue(try await Marked.request("large", in: store.spool))
        await store.close()
        let aside = try #require(
            try await OfflineQueue.setAside(directory: directory.path, evenIfSound: true)
        )
        #expect(aside.salvage.waiting == 0 && aside.salvage.lostCount == 2)
        #expect(
            aside.salvage.lost.allSatisfy { $0.reason.contains("encryption key") },
            "\(aside.salvage.lost)"
        )
        #expect(try directory.found(Marked.texts) == [])
        let path = try keys.write(TestKeys.first)
        let again = try await OfflineQueue.salvage(aside.directory, encryptionKeyFile: path)
        #expect(again.waiting == 2 && again.lostCount == 0)
        let target = try await directory.openEncrypted(TestKeys.first, in: keys)
        let queue = OfflineQueue(
            configuration: OfflineQueue.Configuration(directory: directory.path),
            store: target,
            sender: FakeSender(),
            gate: FakeGate()
        )
        #expect(try await queue.importRequests(from: again.path).imported == 2)
        let body = try #require(try await target.claimAll().first { $0.id == "large" }).body
        guard case .spooled(let file) = body else { return #expect(Bool(false), "not spooled") }
        #expect(try await target.spool.open(file).content() == Marked.spooled)
        await queue.stop()
    }
}
