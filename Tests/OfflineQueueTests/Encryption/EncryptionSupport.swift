internal import Foundation
internal import NetwatchEventLoop
internal import Testing

@testable internal import OfflineQueue

/// Files with encryption keys.
struct TestKeys {
    /// The keys of the tests, as hexadecimal digits.
    static let first = String(repeating: "1a", count: 32)
    static let second = String(repeating: "2b", count: 32)

    private let directory = TemporaryDirectory(marker: "keys")

    init() throws {
        try FileManager.default.createDirectory(atPath: directory.path, withIntermediateDirectories: true)
    }

    var path: String { "\(directory.path)/key" }

    /// Replaces the content of the key file, and returns its path.
    @discardableResult
    func write(_ text: String, mode: Int = 0o600) throws -> String {
        try Data(text.utf8).write(to: URL(filePath: path))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        return path
    }

    func ring(_ keys: String...) throws -> KeyRing {
        try KeyFile(path: try write(keys.joined(separator: "\n"))).keys()
    }
}

/// Content that can be found on the disk unless it is encrypted.
enum Marked {
    /// The texts that occur in a store which ``fill(_:)`` has filled.
    static let texts = [
        "header-7f3a", "inline-7f3a", "spooled-7f3a", "key-7f3a", "reply-7f3a", "field-7f3a",
    ]

    static let spooled = Data(String(repeating: "spooled-7f3a ", count: 20_000).utf8)

    static let response = RecordedResponse(
        status: 200,
        headers: [QueueRequest.Header(name: "X-Reply", value: "field-7f3a")],
        body: Data("reply-7f3a".utf8),
        isTruncated: false
    )

    /// Returns a request with an inline body, or with one in the spool.
    static func request(_ id: String, host: String = "example.com", in spool: BodySpool? = nil) async throws
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
            if let spool { .spooled(try await spool.store(spooled)) } else {
                .inline(Data("inline-7f3a".utf8))
            }
        return try NewRequest(request, options: options, body: body, now: start.date)
    }

    /// Fills a store with waiting, delivered, dead, retried, held and imported requests.
    static func fill(_ store: SQLiteQueueStore) async throws {
        for id in ["delivered", "dead", "retried", "held"] {
            try await store.enqueue(try await request(id, in: store.spool))
        }
        let verdicts: [String: Verdict] = [
            "delivered": .delivered(status: 200), "dead": .dead(reason: "HTTP 400"),
            "retried": .dead(reason: "HTTP 400"), "held": .held(.user),
        ]
        for request in try await store.claimAll() {
            try await store.conclude(request, verdicts[request.id]!, response: response)
        }
        _ = try await store.edit(.retry(newKey: false), ["retried"])
        try await store.enqueue(try await request("waiting"), try await request("large", in: store.spool))
        let archived = try await store.rows(after: ExportCursor(part: .waiting, position: 0), bytes: 1 << 20)
        var (imported, body) = try #require(archived.first { $0.id == "waiting" }).content.get()
        imported.id = "imported"
        var new = try imported.validated()
        new.body = body
        _ = try await store.restore([RestoredRequest(imported, new)])
    }
}

extension TemporaryDirectory {
    /// Opens a store whose key file has these keys; no keys stand for a store without encryption.
    func openEncrypted(
        _ keys: String...,
        in file: TestKeys,
        clock: TestStoreClock = TestStoreClock()
    ) async throws -> SQLiteQueueStore {
        var settings = StoreSettings()
        if !keys.isEmpty { settings.encryptionKeyFile = try file.write(keys.joined(separator: "\n")) }
        return try await openStore(settings, clock: clock)
    }

    /// Opens a store with one key, or without encryption.
    func openStore(key: String?, in file: TestKeys) async throws -> SQLiteQueueStore {
        if let key { try await openEncrypted(key, in: file) } else { try await openEncrypted(in: file) }
    }

    /// Returns those of the texts that occur in any file of the directory.
    func found(_ texts: [String]) throws -> Set<String> {
        let names = try FileManager.default.subpathsOfDirectory(atPath: path)
        return names.reduce(into: Set()) { found, name in
            guard let bytes = FileManager.default.contents(atPath: "\(path)/\(name)") else { return }
            found.formUnion(texts.filter { bytes.range(of: Data($0.utf8)) != nil })
        }
    }
}

extension SQLiteQueueStore {
    /// Encrypts all stored requests with the current key.
    func resealAll() async throws {
        var cursor: ResealCursor? = ResealCursor()
        while let place = cursor { cursor = try await reseal(after: place) }
    }

    func allDetails() async throws -> [RequestDetails] {
        var contents: [RequestDetails] = []
        for request in try await all() { contents.append(try await details(of: request.id)!) }
        return contents
    }

    /// Claims all requests that are due.
    func claimAll() async throws -> [ClaimedRequest] {
        var claimed: [ClaimedRequest] = []
        for lane in try await reopen(releasing: []) { claimed += try await claim(64, of: lane.id).requests }
        return claimed
    }
}
