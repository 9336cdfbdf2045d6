internal import Foundation
internal import GRDB
internal import NetwatchTestSupport
internal import OfflineQueue

/// Opens a queue that sends nothing, calls `body` with the queue and its store, and then stops the queue.
func withQueue<Value>(
    _ directory: TemporaryDirectory,
    _ body: (OfflineQueue, SQLiteQueueStore) async throws -> Value
) async throws -> Value {
    let store = try await SQLiteQueueStore(directory: directory.path)
    let queue = OfflineQueue(
        configuration: OfflineQueue.Configuration(directory: directory.path),
        store: store,
        sender: FakeSender(),
        gate: FakeGate()
    )
    do {
        let value = try await body(queue, store)
        await queue.stop()
        return value
    } catch {
        await queue.stop()
        throw error
    }
}

/// Changes a queue's database with SQL, like a manual edit. No queue may have the database open.
func edit(_ directory: TemporaryDirectory, _ sql: String) throws {
    let database = try DatabaseQueue(path: "\(directory.path)/queue.sqlite")
    try database.writeWithoutTransaction { try $0.execute(sql: "PRAGMA foreign_keys = OFF; \(sql)") }
    try database.close()
}

/// Returns the root pages of a database's tables and indexes by name.
func rootPages(of directory: TemporaryDirectory) throws -> [String: Int] {
    var configuration = Configuration()
    configuration.readonly = true
    let database = try DatabaseQueue(path: "\(directory.path)/queue.sqlite", configuration: configuration)
    defer { try? database.close() }
    let rows = try database.read { try Row.fetchAll($0, sql: "SELECT name, rootpage FROM sqlite_schema") }
    return Dictionary(uniqueKeysWithValues: rows.map { ($0["name"], $0["rootpage"]) })
}

/// Overwrites the root page of a table or an index. A queue may have the database open.
func damageRootPage(of name: String, in directory: TemporaryDirectory) throws {
    let page = try rootPages(of: directory)[name]!
    let file = try FileHandle(forUpdating: URL(filePath: "\(directory.path)/queue.sqlite"))
    try file.seek(toOffset: UInt64(page - 1) * 4096)
    try file.write(contentsOf: Data(repeating: 0xee, count: 4096))
    try file.close()
}

extension StoredBody {
    /// The name of the body's spool file; `nil` if the body is stored in the database.
    var file: String? {
        if case .spooled(let body) = self { body.name } else { nil }
    }
}

// MARK: - A populated queue

extension OfflineQueue {
    /// Enqueues requests with various options and the ids `a0`, `a1`, …. The lengths of their bodies are at or next to
    /// the sizes at which the stored or exported form changes.
    func populate(_ count: Int, seed: UInt64 = 1) async throws {
        var generator = SeededGenerator(seed: seed)
        for index in 0..<count {
            let (request, options) = Self.some(index, &generator)
            _ = try await enqueue(request, options: options)
        }
    }

    private static func some(
        _ index: Int,
        _ generator: inout SeededGenerator
    ) -> (QueueRequest, EnqueueOptions) {
        let size = [0, 5, 48 * 1024, 48 * 1024 + 1, 64 * 1024, 64 * 1024 + 1, 200_000].randomElement(
            using: &generator
        )!
        let body = Data(
            (Data("\(index) ".utf8) + Data(repeating: UInt8(index & 0xff), count: size)).prefix(size)
        )
        var options = EnqueueOptions(isFIFO: index % 3 == 0, id: "a\(index)")
        if index % 2 == 0 { options.lane = "lane \(index % 4) é\u{301}" }
        if !options.isFIFO { options.priority = index % 10 }
        if index % 5 == 0 { options.notBefore = Date(timeIntervalSinceNow: 86_400) }
        if index % 7 == 1 { options.dependencies = ["a\(index - 1)"] }
        if index % 11 == 0 {
            options.expectation = Expectation(statuses: [200...204, 404...404], contentType: "a/*")
        }
        if index % 13 == 0 { options.maximumAttempts = 3 }
        if index % 17 == 0 { options.replaceKey = "key \(index)" }
        options.isAtMostOnce = index % 19 == 0
        options.idempotencyKey.isQuoted = index % 4 == 1
        if index % 6 == 1 { options.idempotencyKey.headerName = "X-Key" }
        let headers = [
            QueueRequest.Header(name: "X-Note", value: "\u{301}\t\"\\\u{1F600} \(index)"),
            QueueRequest.Header(name: "Content-Type", value: ""),
        ]
        let method = index % 8 == 0 ? "PUT" : "POST"
        let url = "https://host\(index % 3).example:8443/\(index)?q=%C3%A9"
        return (QueueRequest(method: method, url: url, headers: headers, body: body), options)
    }
}

// MARK: - Exports

/// The parsed content of an export.
struct ExportContent: Equatable {
    var requests: [ArchivedRequest] = []
    var bodies: [String: Data] = [:]

    init(_ data: Data, piece: Int = 100_000) throws {
        var parser = try ArchiveParser()
        var (rest, current) = (data[...], "")
        while !rest.isEmpty {
            for event in try parser.consume(Data(rest.prefix(piece))) {
                switch event {
                case .request(let request, _):
                    requests.append(request)
                    current = request.id
                case .chunk(let bytes): bodies[current, default: Data()] += bytes
                case .complete: break
                case .void:
                    requests.removeLast()
                    bodies[current] = nil
                }
            }
            rest = rest.dropFirst(piece)
        }
        try parser.finish()
    }

    var ids: [String] { requests.map(\.id) }

    subscript(id: String) -> ArchivedRequest? { requests.first { $0.id == id } }
}

extension OfflineQueue {
    /// Returns the whole export, read in pages of about `limit` bytes.
    nonisolated func exported(limit: Int = 1 << 20, includingDead: Bool = true) async throws -> Data {
        var (data, cursor): (Data, ExportCursor?) = (Data(), nil)
        var trailer = try ExportTrailer()
        repeat {
            let page = try await exportPage(after: cursor, includingDead: includingDead, limit: limit)
            data += page.data
            trailer.add(page.data)
            // Converts the cursor to text and back, as the control API does for its clients.
            cursor = page.next.flatMap { ExportCursor($0.description) }
        } while cursor != nil
        return data + trailer.finish()
    }

    nonisolated func content() async throws -> ExportContent { try ExportContent(await exported()) }
}

/// Returns an export of these lines, completed with a matching end line.
func sealed(_ lines: [String]) throws -> Data {
    let data = Data(lines.map { $0 + "\n" }.joined().utf8)
    var trailer = try ExportTrailer()
    trailer.add(data)
    return data + trailer.finish()
}

/// Returns the lines of an export without its end line.
func lines(_ export: Data) -> [String] {
    String(decoding: export, as: UTF8.self).split(separator: "\n").dropLast().map(String.init)
}

/// Writes data to a file in the directory, and returns its path.
func file(_ data: Data, in directory: TemporaryDirectory, _ name: String = UUID().uuidString) throws -> String
{
    try? FileManager.default.createDirectory(atPath: directory.path, withIntermediateDirectories: true)
    let path = "\(directory.path)/\(name)"
    try data.write(to: URL(fileURLWithPath: path))
    return path
}

func errorCode(_ body: () async throws -> Void) async -> QueueError.Code? {
    do {
        try await body()
        return nil
    } catch {
        return (error as? QueueError)?.code
    }
}
