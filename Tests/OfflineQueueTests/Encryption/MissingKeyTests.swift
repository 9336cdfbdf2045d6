internal import Foundation
internal import Testing

@testable internal import OfflineQueue

/// A store whose encryption key is missing, or is not the one of its requests.
@Suite(.timeLimit(.minutes(5))) struct MissingKeyTests {
    private let directory = TemporaryDirectory(marker: "encrypted")
    private let keys: TestKeys

    init() throws { keys = try TestKeys() }

    @Test func `requests whose key is missing are held and others continue, until the key is back`()
        async throws
    {
        let plain = try await directory.openEncrypted(in: keys)
        try await plain.enqueue(try await Marked.request("new"))
        await plain.close()
        let first = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await first.enqueue(try await Marked.request("small"))
        try await first.enqueue(try await Marked.request("large", in: first.spool))
        let id = try #require(try await first.statistics().encryption.first { $0.isCurrent }?.keyID)
        await first.close()

        let wrong = try await directory.openEncrypted(TestKeys.second, in: keys)
        #expect(
            wrong.openingNotes.count == 2 && wrong.openingNotes[1].contains("`\(id)` of 2 stored requests")
        )
        #expect(try await wrong.claimAll().map(\.id) == ["new"])
        let held = try await wrong.all([.held])
        #expect(held.map(\.id) == ["small", "large"] && held.allSatisfy { $0.holdReason == .key })
        let other = try #require(wrong.environment.sealer.keys?.current.id)
        let reason = "the key file contains the wrong key: `\(other)` instead of `\(id)`"
        #expect(held.allSatisfy { $0.lastError?.hasPrefix(reason) == true })
        #expect(try await wrong.details(of: "small")?.headers == [])
        let report = try await wrong.inspect()
        #expect(report.findings.map(\.kind) == [.encryptionKey, .encryptionKey])
        #expect(!report.isSound && !report.isDamaged && report.unchecked == 2)
        await wrong.close()

        let right = try await directory.openEncrypted(TestKeys.second, TestKeys.first, in: keys)
        #expect(right.openingNotes == [])
        _ = try await right.recover(releasing: HoldReason.releasableByRestart)
        let sent = try await right.claimAll()
        #expect(Set(sent.map(\.id)) == ["small", "large", "new"])
        for request in sent {
            #expect(request.headers.map(\.value) == ["header-7f3a"] && request.key?.value == "key-7f3a")
            if case .spooled(let body) = request.body {
                #expect(try await right.spool.open(body).content() == Marked.spooled)
            } else {
                #expect(request.body == .inline(Data("inline-7f3a".utf8)))
            }
        }
        await right.close()
    }

    @Test func `a store with the wrong key accepts and converts nothing`() async throws {
        let plain = try await directory.openEncrypted(in: keys)
        try await plain.enqueue(try await Marked.request("plain"))
        let archived = try #require(
            try await plain.rows(after: ExportCursor(part: .waiting, position: 0), bytes: 1 << 20).first
        )
        await plain.close()
        let first = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await first.enqueue(try await Marked.request("a"))
        await first.close()

        let wrong = try await directory.openEncrypted(TestKeys.second, in: keys)
        var (imported, body) = try archived.content.get()
        imported.id = "imported"
        var new = try imported.validated()
        new.body = body
        let restored = RestoredRequest(imported, new)
        for operation: @Sendable () async throws -> Void in [
            { try await wrong.enqueue(try await Marked.request("b")) },
            { _ = try await wrong.restore([restored]) },
            { _ = try await wrong.spool.store(Marked.spooled) },
        ] {
            #expect(await errorCode(operation) == .encryptionKeyMissing)
        }
        let note = try #require(wrong.openingNotes.first)
        #expect(note.hasPrefix("the queue was opened with the wrong encryption key, `"), "\(note)")
        #expect(note.contains("accepts no requests; add the key to the key file"), "\(note)")
        #expect(try await wrong.reseal(after: ResealCursor()) == nil)
        #expect(try await wrong.statistics().encryption.map(\.isCurrent) == [false, false])
        await wrong.close()
    }

    @Test func `a locked store without requests lists its missing key`() async throws {
        let clock = TestStoreClock()
        let first = try await directory.openEncrypted(TestKeys.first, in: keys, clock: clock)
        try await first.enqueue(try await Marked.request("a"))
        let id = try #require(try await first.statistics().encryption.first?.keyID)
        _ = try await first.edit(.cancel, ["a"])
        clock.advance(StoreSettings().retention.done + .seconds(1))
        _ = try await first.expire()
        #expect(try await first.all().isEmpty)
        await first.close()

        let locked = try await directory.openEncrypted(in: keys, clock: clock)
        let use = try await locked.statistics().encryption
        let missing = QueueStatistics.KeyUse(keyID: id, requests: 0, isAvailable: false, isCurrent: false)
        #expect(use == [missing])
        await locked.close()
    }

    @Test func `another key replaces the key of a store when no unfinished request needs the old one`()
        async throws
    {
        let first = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await first.enqueue(try await Marked.request("a"))
        let sent = try #require(try await first.claimAll().first)
        try await first.conclude(sent, .delivered(status: 200), response: Marked.response)
        await first.close()
        let second = try await directory.openEncrypted(TestKeys.second, in: keys)
        try await second.enqueue(try await Marked.request("b"))
        await second.close()
        let old = try await directory.openEncrypted(TestKeys.first, in: keys)
        #expect(
            await errorCode { try await old.enqueue(try await Marked.request("c")) } == .encryptionKeyMissing
        )
        await old.close()
    }

    @Test func `without any key an encrypted store accepts nothing and loses nothing`() async throws {
        let first = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await first.enqueue(try await Marked.request("a"))
        await first.close()

        let locked = try await directory.openEncrypted(in: keys)
        let refusal = await #expect(throws: QueueError.self) {
            try await locked.enqueue(try await Marked.request("b"))
        }
        #expect(refusal?.code == .encryptionKeyMissing)
        #expect(refusal?.message.hasPrefix("the queue was opened without its encryption key `") == true)
        let large = await #expect(throws: QueueError.self) {
            _ = try await locked.spool.store(Marked.spooled)
        }
        #expect(large?.code == .encryptionKeyMissing)
        #expect(try await locked.claimAll().isEmpty)
        let held = try await locked.all()
        #expect(held.map(\.holdReason) == [.key])
        #expect(held[0].lastError?.contains("` is missing; add the key") == true)
        for edit in [QueueEdit.retry(newKey: false), .release] {
            #expect(try await locked.edit(edit, ["a"]) == [.refused(.held)])
            let edited = try await locked.edit(
                edit,
                matching: RequestFilter(states: [.held]),
                isDryRun: false
            )
            #expect(edited.result.done == 0 && edited.result.refused == 1)
        }
        #expect(throws: QueueError.self) { try locked.environment.sealer.requireUnlocked() }
        #expect(try await locked.reseal(after: ResealCursor()) == nil)
        await locked.close()
        #expect(try directory.found(Marked.texts) == [])

        let unlocked = try await directory.openEncrypted(TestKeys.first, in: keys)
        #expect(try await unlocked.edit(.release, ["a"]) == [.done(.pending)])
        #expect(try await unlocked.claimAll().map(\.body) == [.inline(Data("inline-7f3a".utf8))])
        await unlocked.close()
    }

    @Test func `an encrypted store keeps no response as plaintext when its key is missing`() async throws {
        let plain = try await directory.openEncrypted(in: keys)
        try await plain.enqueue(try await Marked.request("a"))
        await plain.close()
        // One request is encrypted, and the other one is not yet converted.
        let encrypted = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await encrypted.enqueue(try await Marked.request("b", host: "other.example"))
        await encrypted.close()
        let locked = try await directory.openEncrypted(in: keys)
        let request = try #require(try await locked.claimAll().first { $0.id == "a" })
        try await locked.conclude(request, .delivered(status: 200), response: Marked.response)
        #expect(try await locked.details(of: "a")?.response == nil)
        await locked.close()
        #expect(try directory.found(["field-7f3a", "reply-7f3a"]) == [])
    }

    @Test func `without the key, missing and truncated body files are found`() async throws {
        let store = try await directory.openEncrypted(TestKeys.first, in: keys)
        for id in ["a", "b", "c"] { try await store.enqueue(try await Marked.request(id, in: store.spool)) }
        let whole = try await store.spool.store(Data(count: 2 * SealedFile.chunkBytes))
        #expect(await store.spool.verifySealed(whole.name, size: whole.size) == nil)
        await store.spool.remove([whole.name])
        await store.close()
        let spool = "\(directory.path)/spool"
        let files = try FileManager.default.contentsOfDirectory(atPath: spool).map { "\(spool)/\($0)" }
        try FileManager.default.removeItem(atPath: files[0])
        try Data(contentsOf: URL(filePath: files[1])).dropLast().write(to: URL(filePath: files[1]))
        let locked = try await directory.openEncrypted(in: keys)
        let report = try await locked.inspect()
        let kinds = report.findings.map(\.kind)
        #expect(kinds.count { $0 == .encryptionKey } == 3 && report.unchecked == 3)
        #expect(Set(kinds) == [.encryptionKey, .bodyMissing, .bodyChanged] && kinds.count == 5)
        #expect(report.isDamaged && !report.isSound)
        await locked.close()
    }
}
