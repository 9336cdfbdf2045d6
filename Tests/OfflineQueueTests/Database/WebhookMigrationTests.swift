internal import Foundation
internal import GRDB
internal import OfflineQueue
internal import Testing

/// The migration to version 11 stores the ids of the webhooks, which earlier versions calculated.
@Suite struct WebhookMigrationTests {
    private let directory = TemporaryDirectory(marker: "migration")
    private let clock = TestStoreClock()

    /// Writes a store of version 10 with the webhooks of dead requests. Version 10 calculated the ids of webhooks.
    ///
    /// - Parameters:
    ///   - ids: The ids of the dead requests.
    ///   - cancelled: The ids of those that are cancelled later.
    /// - Returns: The ids of the webhooks.
    private func writeVersion10(_ ids: [String], cancelling cancelled: [String] = []) async throws -> [String]
    {
        let store = try await directory.openStore(clock: clock)
        let onDone = Webhook(url: "https://hooks.example/")
        var webhooks: [String] = []
        var renaming = ""
        for (index, id) in ids.enumerated() {
            let lane = try await store.enqueue(try new(id) { $0.onDone = onDone })[0].lane.id
            let sent = try #require(try await store.claim(of: lane).requests.first)
            try await store.conclude(sent, .dead(reason: "HTTP 410"))
            // The position in the history, and the times of the acceptance and of the end.
            let end = "\(index + 1) \(start.milliseconds) \(start.milliseconds) \(id)"
            webhooks.append(try UUIDv8.make(hashing: "netwatch webhook \(end)"))
            renaming += "UPDATE request SET id = '\(webhooks[index])' WHERE webhook_of = '\(id)';"
        }
        clock.advance(.seconds(1))
        _ = try await store.edit(.cancel, cancelled)
        await store.close()
        try change(
            renaming + OldSchema.withoutVersion14 + OldSchema.withoutVersion13 + OldSchema.withoutVersion12
                + """
                ALTER TABLE history DROP COLUMN webhook_id; DROP INDEX request_submitter; DROP INDEX history_submitter;
                DELETE FROM grdb_migrations WHERE identifier = '11'; PRAGMA user_version = 10
                """
        )
        return webhooks
    }

    private func change(_ sql: String) throws {
        let database = try DatabaseQueue(path: "\(directory.path)/queue.sqlite")
        try database.writeWithoutTransaction { try $0.execute(sql: sql) }
        try database.close()
    }

    /// Changes the definition of the table `history`. Another connection must use it afterwards.
    private func changeSchema(to sql: String) throws {
        try change(
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = \(sql) WHERE name = 'history'"
        )
    }

    @Test func `a webhook that version 10 stored is found, also after its request was dropped`() async throws
    {
        let webhook = try await writeVersion10(["a"])[0]
        let store = try await directory.openStore(clock: clock)
        #expect(try await store.details(of: "a")?.webhookID == webhook)
        clock.advance(.seconds(1))
        #expect(try await store.edit(.cancel, ["a"]) == [.done(.cancelled)])
        #expect(try await store.details(of: "a")?.webhookID == webhook)
        await store.close()
    }

    /// The drop has changed a time from which version 10 calculated the id.
    @Test func `no id is stored for a request that was dropped before the migration`() async throws {
        _ = try await writeVersion10(["a", "b"], cancelling: ["a"])
        await (try await directory.openStore(clock: clock)).close()
        let database = try DatabaseQueue(path: "\(directory.path)/queue.sqlite")
        let stored = try await database.read {
            try String.fetchAll($0, sql: "SELECT id FROM history WHERE webhook_id IS NOT NULL")
        }
        try database.close()
        #expect(stored == ["b"])
    }

    @Test func `a damaged finished request does not prevent the migration`() async throws {
        let webhooks = try await writeVersion10(["a", "b"])
        // SQLite checks the types of a STRICT table, but a damaged page may contain any value.
        try changeSchema(to: "replace(sql, 'STRICT', '')")
        try change("UPDATE history SET created_at = 'monday' WHERE id = 'a'")
        try changeSchema(to: "rtrim(sql) || ' STRICT'")
        let store = try await directory.openStore(clock: clock)
        #expect(try await store.details(of: "b")?.webhookID == webhooks[1])
        await store.close()
    }
}
