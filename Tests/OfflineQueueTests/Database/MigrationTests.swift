internal import ClientCore
internal import Foundation
internal import GRDB
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// Which stores are opened, and what happens to those of other versions.
@Suite struct MigrationTests {
    private let directory = TemporaryDirectory(marker: "migration")

    private func change(_ sql: String) throws {
        let database = try DatabaseQueue(path: "\(directory.path)/queue.sqlite")
        try database.writeWithoutTransaction { try $0.execute(sql: sql) }
        try database.close()
    }

    /// Opens the store after a change, and returns why it is refused. The database must not be changed.
    private func refusal(after sql: String) async throws -> QueueError {
        try await SQLiteQueueStore(directory: directory.path).close()
        try change(sql)
        let path = URL(filePath: "\(directory.path)/queue.sqlite")
        let before = try Data(contentsOf: path)
        let error = try await #require(throws: QueueError.self) {
            _ = try await SQLiteQueueStore(directory: directory.path)
        }
        #expect(error.code == .storeUnusable)
        #expect(try Data(contentsOf: path) == before)
        return error
    }

    @Test(arguments: ["INSERT INTO grdb_migrations VALUES ('v99')", "PRAGMA application_id = 7"])
    func `a store of a newer version or of another program is refused and not changed`(sql: String)
        async throws
    {
        let message = try await refusal(after: sql).message
        #expect(message.contains("another program") || message.contains("newer netwatch"))
    }

    /// The newest development version had the number 14.
    @Test(arguments: [1, 14]) func `a store of a development version is refused with the way to move it`(
        newest: Int
    ) async throws {
        let numbers = (1...newest).map { "('\($0)')" }.joined(separator: ",")
        let sql = """
            DELETE FROM grdb_migrations; INSERT INTO grdb_migrations VALUES \(numbers); PRAGMA user_version = \(newest)
            """
        let message = try await refusal(after: sql).message
        #expect(message.contains("`netwatch queue export`") && message.contains("`netwatch queue import`"))
    }

    /// From the first release on, a migration must not lose what an older version has stored.
    @Test func `a migration keeps the requests of an older version`() async throws {
        let clock = TestStoreClock()
        let store = try await directory.openStore(clock: clock)
        try await EveryState.fill(store, clock)
        let before = try await store.all()
        await store.close()
        let database = try DatabaseQueue(path: "\(directory.path)/queue.sqlite")
        var migrator = QueueSchema.migrator
        migrator.registerMigration("v2") { try $0.execute(sql: "ALTER TABLE request ADD COLUMN later TEXT") }
        try migrator.migrate(database)
        let (names, found) = try await database.read {
            (
                try String.fetchAll($0, sql: "SELECT identifier FROM grdb_migrations"),
                try String.fetchSet($0, sql: "SELECT id FROM request UNION SELECT id FROM history")
            )
        }
        try database.close()
        #expect(names == ["v1", "v2"] && found == Set(before.map(\.id)) && !before.isEmpty)
    }
}

/// Exports that a development version has written.
@Suite struct DevelopmentExportTests {
    private let files = TemporaryDirectory()
    private static let header =
        #"{"v":1,"type":"netwatch-queue-export","created":1796080224380,"dead":true}"#
    private static let rich = #"""
        {"request":{"after":[],"atMostOnce":true,"attempts":0,"body":{"bytes":2,"sha256":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"},"constraints":"unmetered; window=22:00-06:00 Europe/Berlin","created":1796080224315,"deferrals":0,"expect":"status=200,json=/ok=true","expires":4827702624315,"fifo":false,"headers":[],"id":"rich","lane":"l","life":31622400000,"maximumAttempts":7,"method":"POST","onDone":{"url":"https://hook.example/"},"priority":5,"state":"pending","submitter":0,"tag":"t","timeouts":"response=600000,http-version=1.1,retry=404+500-599,dead=418","url":"https://api.example/rich"}}
        """#
    private static let plain = #"""
        {"request":{"after":[],"atMostOnce":false,"attempts":2,"created":1796080224347,"deferrals":0,"expires":4796685024347,"fifo":true,"headers":[["X-A","b"]],"id":"plain","key":{"header":"Idempotency-Key","quoted":true,"value":"38191aac"},"lane":"","lastError":"HTTP 503","lastStatus":503,"life":604800000,"method":"POST","priority":5,"state":"held","holdReason":"user","submitter":0,"url":"https://api.example/plain"}}
        """#
    private static let archive = [header, rich, #""e30=""#, plain]

    @Test func `its requests keep their options`() async throws {
        let path = try file(try sealed(Self.archive), in: files)
        try await withQueue(TemporaryDirectory()) { queue, store in
            #expect(try await queue.importRequests(from: path).imported == 2)
            let rich = try #require(try await queue.request("rich"))
            var options = rich.options
            #expect(options.expectation.description == "status=200,json=/ok=true")
            #expect(options.timeouts.response == .seconds(600) && options.httpVersion == .http1)
            #expect(options.statusRules == StatusRules(retry: [404...404, 500...599], dead: [418...418]))
            #expect(options.maximumAttempts == 7 && options.isAtMostOnce && options.tag == "t")
            #expect(options.onDone == Webhook(url: "https://hook.example/"))
            #expect(options.constraints.description == "unmetered; window=22:00-06:00 Europe/Berlin")
            let plain = try #require(try await queue.request("plain"))
            options = plain.options
            #expect(options.stored == nil && plain.idempotencyKey == "38191aac")
            #expect(plain.summary.state == .held && plain.summary.status == 503 && plain.summary.isFIFO)
            #expect(lines(try await queue.exported()).contains { $0.contains(#""max_attempts":7"#) })
        }
    }

    @Test(arguments: [
        ("http-version=1.1", "http-version=3", "the setting `http-version=3` of the attempts is unknown"),
        ("retry=404+500-599", "retry=404+x", "`404,x` is not a list of statuses; accepted: "),
        ("response=600000", "response=x", "the setting `response=x` of the attempts is unknown"),
        (
            "dead=418", "dead=404",
            "both the retry statuses `404,500-599` and the dead statuses `404` contain 404"
        ),
        ("response=600000", "response=0", "the response timeout is 0 seconds; it must be 1 ms to 24 hours"),
        ("\"atMostOnce\":true", "\"atMostOnce\":1", "at_most_once` has the wrong type"),
        ("status=200", "status=600", "status"),
    ])
    func `an import names the setting that it refuses`(old: String, new: String, words: String) async throws {
        let changed = Self.archive.map { $0.replacing(old, with: new) }
        let error = try await refusal(of: try sealed(changed))
        #expect(error.message.contains(words), "\(error)")
    }

    @Test func `a truncated or changed one is refused`() async throws {
        let whole = try sealed(Self.archive)
        for damaged in [whole.dropLast(1), whole.dropLast(200), Data(whole.map { $0 == 0x37 ? 0x38 : $0 })] {
            _ = try await refusal(of: Data(damaged))
        }
    }

    private func refusal(of export: Data) async throws -> QueueError {
        let path = try file(export, in: files)
        return try await withQueue(TemporaryDirectory()) { queue, _ in
            let error = try await #require(throws: QueueError.self) {
                _ = try await queue.importRequests(from: path)
            }
            #expect(error.code == .invalidImport)
            #expect(try await queue.list(RequestQuery()).requests.isEmpty)
            return error
        }
    }
}
