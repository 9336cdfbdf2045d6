internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// A store whose requests are encrypted.
@Suite(.timeLimit(.minutes(5))) struct EncryptedStoreTests {
    private let directory = TemporaryDirectory(marker: "encrypted")
    private let keys: TestKeys

    init() throws { keys = try TestKeys() }

    // MARK: What is on the disk

    private static let markers = [
        "header-7f3a", "inline-7f3a", "spooled-7f3a", "key-7f3a", "reply-7f3a", "field-7f3a",
    ]

    private static let spooled = Data(String(repeating: "spooled-7f3a ", count: 20_000).utf8)

    private func marked(_ id: String, host: String = "example.com", in spool: BodySpool? = nil) async throws
        -> NewRequest
    {
        let request = QueueRequest(
            method: "POST",
            url: "http://\(host)/\(id)",
            headers: [QueueRequest.Header(name: "X-Note", value: "header-7f3a")],
            body: Data("inline-7f3a".utf8)
        )
        var options = EnqueueOptions(id: id)
        options.idempotencyKey = .value("key-7f3a")
        let body: StoredBody =
            if let spool { .spooled(try await spool.store(Self.spooled)) } else {
                .inline(Data("inline-7f3a".utf8))
            }
        return try NewRequest(request, options: options, body: body, now: start.date)
    }

    private static let response = RecordedResponse(
        status: 200,
        headers: [QueueRequest.Header(name: "X-Reply", value: "field-7f3a")],
        body: Data("reply-7f3a".utf8),
        isTruncated: false
    )

    /// Fills a store with waiting, delivered, dead, retried, held and imported requests.
    private func fill(_ store: SQLiteQueueStore) async throws {
        for id in ["delivered", "dead", "retried", "held"] {
            try await store.enqueue(try await marked(id, in: store.spool))
        }
        let verdicts: [String: Verdict] = [
            "delivered": .delivered(status: 200), "dead": .dead(reason: "HTTP 400"),
            "retried": .dead(reason: "HTTP 400"), "held": .held(.user),
        ]
        for request in try await store.claimAll() {
            try await store.conclude(request, verdicts[request.id]!, response: Self.response)
        }
        _ = try await store.edit(.retry(newKey: false), ["retried"])
        try await store.enqueue(try await marked("waiting"), try await marked("large", in: store.spool))
        let archived = try await store.rows(after: ExportCursor(part: .waiting, position: 0), bytes: 1 << 20)
        var (imported, body) = try #require(archived.first { $0.id == "waiting" }).content.get()
        imported.id = "imported"
        var new = try imported.validated()
        new.body = body
        _ = try await store.restore([RestoredRequest(imported, new)])
    }

    @Test func `no file of an encrypted queue contains a header value, a body, a key or a response`()
        async throws
    {
        let store = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await fill(store)
        let upload = try store.spool.makeWriter(limit: 1 << 20)
        try await upload.append(Self.spooled)
        #expect(
            try directory.found(Self.markers) == [],
            "while the store is open, with the log and an upload"
        )
        #expect(try directory.found(["X-Note", "example.com"]) == ["example.com"], "URLs stay readable")
        await upload.discard()
        await store.close()
        #expect(try directory.found(Self.markers) == [])
        // The same requests without encryption show that the search finds them.
        let plain = TemporaryDirectory()
        let readable = try await plain.openEncrypted(in: keys)
        try await fill(readable)
        #expect(try plain.found(Self.markers) == Set(Self.markers))
        await readable.close()
    }

    @Test func `an encrypted store returns the same values as a store without encryption`() async throws {
        let (clock, other) = (TestStoreClock(), TestStoreClock())
        let plain = TemporaryDirectory()
        let expected = try await plain.openStore(clock: other)
        let store = try await directory.openEncrypted(TestKeys.first, in: keys, clock: clock)
        try await EveryState.fill(expected, other)
        try await EveryState.fill(store, clock)
        #expect(try await store.allDetails() == expected.allDetails())
        for part in [ExportCursor.Part.waiting, .dead] {
            let cursor = ExportCursor(part: part, position: 0)
            let found = try await store.rows(after: cursor, bytes: 1 << 24).map {
                try $0.content.get().request
            }
            #expect(
                try await expected.rows(after: cursor, bytes: 1 << 24).map { try $0.content.get().request }
                    == found
            )
        }
        #expect(try await store.inspect().findings == [])
        #expect(try await store.statistics().encryption.map(\.requests) == [store.all().count])
        #expect(try await expected.statistics().encryption == [])
    }

    @Test func `enqueuing a stored request again is recognized, and other content is refused`() async throws {
        let store = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await store.enqueue(try await marked("a"))
        let again = try await store.enqueue(try await marked("a"))
        #expect(again[0].outcome == .known && again[0].idempotencyKey == "key-7f3a")
        let other = try NewRequest(
            QueueRequest(method: "POST", url: "http://example.com/a", body: Data("inline-7f3b".utf8)),
            options: EnqueueOptions(id: "a"),
            body: .inline(Data("inline-7f3b".utf8)),
            now: start.date
        )
        let error = await #expect(throws: QueueError.self) { try await store.enqueue(other) }
        #expect(error?.code == .idConflict && error?.message.contains("different: headers, body") == true)
    }

    @Test func `a retry with a new key stores that key encrypted`() async throws {
        let store = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await store.enqueue(try await marked("a"))
        _ = try await store.edit(.retry(newKey: true), ["a"])
        let key = try #require(try await store.claimAll().first?.key?.value)
        #expect(key != "key-7f3a" && key.utf8.count == 36)
        #expect(try directory.found([key]) == [])
    }

    // MARK: Missing keys

    @Test func `requests whose key is missing are held and others continue, until the key is back`()
        async throws
    {
        let plain = try await directory.openEncrypted(in: keys)
        try await plain.enqueue(try await marked("new"))
        await plain.close()
        let first = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await first.enqueue(try await marked("small"), try await marked("large", in: first.spool))
        let id = try #require(try await first.statistics().encryption.first { $0.isCurrent }?.keyID)
        await first.close()

        let wrong = try await directory.openEncrypted(TestKeys.second, in: keys)
        #expect(
            wrong.openingNotes.count == 2 && wrong.openingNotes[1].contains("`\(id)` of 2 stored requests")
        )
        #expect(try await wrong.claimAll().map(\.id) == ["new"])
        let held = try await wrong.all([.held])
        #expect(held.map(\.id) == ["small", "large"] && held.allSatisfy { $0.holdReason == .key })
        #expect(held.allSatisfy { $0.lastError?.contains("encryption key `\(id)` is missing") == true })
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
                #expect(try await right.spool.open(body).content() == Self.spooled)
            } else {
                #expect(request.body == .inline(Data("inline-7f3a".utf8)))
            }
        }
        await right.close()
    }

    @Test func `a store with the wrong key accepts and converts nothing`() async throws {
        let plain = try await directory.openEncrypted(in: keys)
        try await plain.enqueue(try await marked("plain"))
        let archived = try #require(
            try await plain.rows(after: ExportCursor(part: .waiting, position: 0), bytes: 1 << 20).first
        )
        await plain.close()
        let first = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await first.enqueue(try await marked("a"))
        await first.close()

        let wrong = try await directory.openEncrypted(TestKeys.second, in: keys)
        var (imported, body) = try archived.content.get()
        imported.id = "imported"
        var new = try imported.validated()
        new.body = body
        let restored = RestoredRequest(imported, new)
        for operation: @Sendable () async throws -> Void in [
            { try await wrong.enqueue(try await marked("b")) },
            { _ = try await wrong.restore([restored]) },
            { _ = try await wrong.spool.store(Self.spooled) },
        ] {
            #expect(await errorCode(operation) == .encryptionKeyMissing)
        }
        #expect(
            wrong.openingNotes.first?.contains("accepts no requests; add the key to the key file") == true
        )
        #expect(try await wrong.reseal(after: ResealCursor()) == nil)
        #expect(try await wrong.statistics().encryption.map(\.isCurrent) == [false, false])
        await wrong.close()
    }

    @Test func `another key replaces the key of a store when no unfinished request needs the old one`()
        async throws
    {
        let first = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await first.enqueue(try await marked("a"))
        let sent = try #require(try await first.claimAll().first)
        try await first.conclude(sent, .delivered(status: 200), response: Self.response)
        await first.close()
        let second = try await directory.openEncrypted(TestKeys.second, in: keys)
        try await second.enqueue(try await marked("b"))
        await second.close()
        let old = try await directory.openEncrypted(TestKeys.first, in: keys)
        #expect(
            await errorCode { try await old.enqueue(try await self.marked("c")) } == .encryptionKeyMissing
        )
        await old.close()
    }

    @Test func `without any key an encrypted store accepts nothing and loses nothing`() async throws {
        let first = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await first.enqueue(try await marked("a"))
        await first.close()

        let locked = try await directory.openEncrypted(in: keys)
        let refusal = await #expect(throws: QueueError.self) {
            try await locked.enqueue(try await self.marked("b"))
        }
        #expect(refusal?.code == .encryptionKeyMissing)
        let large = await #expect(throws: QueueError.self) { _ = try await locked.spool.store(Self.spooled) }
        #expect(large?.code == .encryptionKeyMissing)
        #expect(try await locked.claimAll().isEmpty)
        #expect(try await locked.all().map(\.holdReason) == [.key])
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
        #expect(try directory.found(Self.markers) == [])

        let unlocked = try await directory.openEncrypted(TestKeys.first, in: keys)
        #expect(try await unlocked.edit(.release, ["a"]) == [.done(.pending)])
        #expect(try await unlocked.claimAll().map(\.body) == [.inline(Data("inline-7f3a".utf8))])
        await unlocked.close()
    }

    @Test func `an encrypted store keeps no response as plaintext when its key is missing`() async throws {
        let plain = try await directory.openEncrypted(in: keys)
        try await plain.enqueue(try await marked("a"))
        await plain.close()
        // One request is encrypted, and the other one is not yet converted.
        let encrypted = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await encrypted.enqueue(try await marked("b", host: "other.example"))
        await encrypted.close()
        let locked = try await directory.openEncrypted(in: keys)
        let request = try #require(try await locked.claimAll().first { $0.id == "a" })
        try await locked.conclude(request, .delivered(status: 200), response: Self.response)
        #expect(try await locked.details(of: "a")?.response == nil)
        await locked.close()
        #expect(try directory.found(["field-7f3a", "reply-7f3a"]) == [])
    }

    @Test func `values that were exchanged between requests are detected`() async throws {
        let store = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await store.enqueue(try await marked("a"), try await marked("b"), try await marked("c"))
        await store.close()
        try edit(
            directory,
            "UPDATE request SET headers = (SELECT headers FROM request WHERE id = 'b') WHERE id = 'a'"
        )
        let changed = try await directory.openEncrypted(TestKeys.first, in: keys)
        #expect(Set(try await changed.claimAll().map(\.id)) == ["b", "c"])
        let held = try #require(try await changed.details(of: "a")).summary
        #expect(held.holdReason == .key)
        let reason = try #require(held.lastError)
        #expect(
            reason.contains("header fields do not match the request") && reason.contains("drop the request")
        )
        let findings = try await changed.inspect().findings
        #expect(findings.map(\.kind) == [.request] && findings.map(\.subject) == ["a"])
        await changed.close()
    }

    @Test(arguments: [
        "url = 'http://evil.example/a'", "method = 'PUT'", "credential = 'other'", "key_header = 'X-Other'",
        "key_quoted = 1", "body_bytes = 3", "key_id = NULL",
    ])
    func `a request is held if a value was changed that decides what is sent and where`(change: String)
        async throws
    {
        let store = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await store.enqueue(try await marked("a"), try await marked("b"))
        await store.close()
        try edit(directory, "UPDATE request SET \(change) WHERE id = 'a'")
        let changed = try await directory.openEncrypted(TestKeys.first, in: keys)
        #expect(try await changed.claimAll().map(\.id) == ["b"])
        #expect(try await changed.details(of: "a")?.summary.holdReason == .key)
        let report = try await changed.inspect()
        #expect(report.findings.map(\.subject) == ["a"] && report.isDamaged)
        await changed.close()
    }

    @Test(arguments: [[], [TestKeys.first]])
    func `a changed body in the database is found, and not exported`(names: [String]) async throws {
        let open = { try await directory.openStore(key: names.first, in: keys) }
        let store = try await open()
        try await store.enqueue(try await marked("a"), try await marked("b"))
        #expect(try await store.inspect().findings == [])
        await store.close()
        try edit(directory, "UPDATE body SET bytes = zeroblob(length(bytes)) WHERE seq = 1")
        let changed = try await open()
        let report = try await changed.inspect()
        #expect(report.findings.map(\.kind) == [.request] && report.findings.map(\.subject) == ["a"])
        let rows = try await changed.rows(after: ExportCursor(part: .waiting, position: 0), bytes: 1 << 20)
        #expect(rows.compactMap { try? $0.content.get() }.map(\.request.id) == ["b"])
        await changed.close()
    }

    @Test(arguments: [[], [TestKeys.first]])
    func `a request whose stored body was removed is not sent without it`(names: [String]) async throws {
        let store = try await directory.openStore(key: names.first, in: keys)
        try await store.enqueue(try await marked("a"))
        await store.close()
        try edit(directory, "DELETE FROM body")
        let changed = try await directory.openStore(key: names.first, in: keys)
        #expect(try await changed.claimAll().map(\.body) == [.unreadable])
        await changed.close()
    }

    @Test func `without the key, missing and truncated body files are found`() async throws {
        let store = try await directory.openEncrypted(TestKeys.first, in: keys)
        for id in ["a", "b", "c"] { try await store.enqueue(try await marked(id, in: store.spool)) }
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

    // MARK: Conversion and rotation

    @Test func `a queue that gets a key encrypts its requests, and no plaintext remains`() async throws {
        let plain = try await directory.openEncrypted(in: keys)
        try await fill(plain)
        let before = try await plain.allDetails()
        await plain.close()
        #expect(try directory.found(Self.markers) == Set(Self.markers))

        let store = try await directory.openEncrypted(TestKeys.first, in: keys)
        let unsealed = try await store.statistics().encryption
        #expect(unsealed.map(\.isCurrent) == [false, true] && unsealed.map(\.requests) == [before.count, 0])
        try await store.resealAll()
        #expect(try await store.allDetails() == before)
        let use = try await store.statistics().encryption
        #expect(use.map(\.requests) == [before.count] && use.allSatisfy { $0.isCurrent && $0.isAvailable })
        #expect(try await store.inspect().findings == [])
        await store.close()
        #expect(try directory.found(Self.markers) == [])
    }

    @Test func `a body that an attempt is about to read is converted later`() async throws {
        let plain = try await directory.openEncrypted(in: keys)
        try await plain.enqueue(try await marked("large", in: plain.spool))
        await plain.close()
        let store = try await directory.openEncrypted(TestKeys.first, in: keys)
        let claimed = try #require(try await store.claimAll().first)
        let next = try await store.reseal(after: ResealCursor())
        #expect(next?.postponed == 1)
        guard case .spooled(let body) = claimed.body else { return #expect(Bool(false), "not spooled") }
        #expect(try await store.spool.open(body).content() == Self.spooled)
        try await store.conclude(claimed, .retry(countsAsAttempt: true))
        try await store.resealAll()
        #expect(try directory.found(["spooled-7f3a"]) == [])
        guard case .spooled(let copy) = try await store.claimAll().first?.body else {
            return #expect(Bool(false), "not spooled")
        }
        #expect(try await store.spool.open(copy).content() == Self.spooled)
        await store.close()
    }

    @Test func `after a rotation the old key is no longer needed`() async throws {
        let store = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await fill(store)
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
        try await plain.enqueue(try await marked("a"))
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

    // MARK: Salvage

    @Test func `salvage exports encrypted requests only with their key, and keeps the store`() async throws {
        let store = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await store.enqueue(try await marked("a"), try await marked("large", in: store.spool))
        await store.close()
        let aside = try #require(
            try await OfflineQueue.setAside(directory: directory.path, evenIfSound: true)
        )
        #expect(aside.salvage.waiting == 0 && aside.salvage.lostCount == 2)
        #expect(
            aside.salvage.lost.allSatisfy { $0.reason.contains("encryption key") },
            "\(aside.salvage.lost)"
        )
        #expect(try directory.found(Self.markers) == [])
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
        #expect(try await target.spool.open(file).content() == Self.spooled)
        await queue.stop()
    }
}
