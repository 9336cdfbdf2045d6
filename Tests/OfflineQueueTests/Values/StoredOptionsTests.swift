internal import ClientCore
internal import Foundation
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// The record of options that a request keeps in one column.
@Suite struct StoredOptionsTests {
    private let directory = TemporaryDirectory(marker: "options")
    private let files = TemporaryDirectory()

    /// Options of which every stored one differs from its default.
    private static var all: EnqueueOptions {
        var options = EnqueueOptions()
        options.maximumAttempts = 3
        (options.timeouts.connect, options.timeouts.response) = (.milliseconds(1), .milliseconds(1500))
        (options.timeouts.total, options.httpVersion) = (.seconds(86_400), .http1)
        options.statusRules = StatusRules(retry: [404...404, 500...599], dead: [410...410])
        options.expectation = Expectation(statuses: [200...200], rules: [.bodyPrefix("a,b")])
        options.isAtMostOnce = true
        options.onDone = Webhook(url: "https://hook.example/", credential: "c")
        options.constraints.isUnmetered = true
        (options.webhookOf, options.isRecorded) = ("other", false)
        return options
    }

    @Test func `only the options that differ from their defaults are stored`() throws {
        #expect(EnqueueOptions().stored == nil)
        var options = EnqueueOptions(lane: "l", isFIFO: true, id: "a")
        (options.priority, options.tag, options.credential, options.replaceKey) = (1, "t", "c", "r")
        (options.deadline, options.notBefore, options.dependencies) = (Date(), Date(), ["x"])
        #expect(options.stored == nil, "they have columns of their own")
        options.httpVersion = .http2
        #expect(options.stored == #"{"http_version":"2"}"#)
        #expect(
            Self.all.stored == """
                {"at_most_once":true,"connect_timeout_seconds":0.001,"constraints":"unmetered","dead_statuses":"410",\
                "expect":"status=200,body=a\\\\,b","http_version":"1.1","is_recorded":false,"max_attempts":3,\
                "on_done":{"credential":"c","url":"https://hook.example/"},"response_timeout_seconds":1.5,\
                "retry_statuses":"404,500-599","total_timeout_seconds":86400,"webhook_of":"other"}
                """
        )
        #expect(EnqueueOptions(stored: Self.all.stored) == Self.all)
    }

    @Test func `every member of the record is read and written`() throws {
        let record = try #require(Self.all.stored)
        for member in EnqueueOptions.members where member.use != .call {
            #expect(record.contains("\"\(member.name.snakeCase)\""), "\(member.name)")
        }
    }

    @Test(arguments: [
        (#"{"max_attempts":"x"}"#, "`max_attempts` has the wrong type"),
        (#"{"http_version":"3"}"#, "`http_version` is `3`; it must be one of 1.1, 2"),
        (#"{"retry_statuses":"600"}"#, "`retry_statuses`: `600` is not a list of statuses"),
        (#"{"max_attempts":0}"#, "the maximum number of attempts is 0; it must be at least 1"),
        (
            #"{"response_timeout_seconds":-1}"#,
            "the response timeout is -1 second; it must be 1 ms to 24 hours"
        ),
        (#"{"dead_statuses":"99"}"#, "`dead_statuses`: `99` is not a list of statuses"),
        (
            #"{"on_done":{"method":"PUT","url":"https://hook.example/"}}"#,
            "`on_done`: `method` is not a known name; accepted: url, credential"
        ),
        (#"{"later":1}"#, "the option `later` is unknown"), ("?", "invalid JSON"), ("", "invalid JSON"),
    ])
    func `a request whose record cannot be read is held with the reason, and not sent`(
        record: String,
        reason: String
    ) async throws {
        let first = try await SQLiteQueueStore(directory: directory.path)
        try await first.enqueue(try new("a"), try new("b"))
        await first.close()
        try edit(directory, "UPDATE request SET options = '\(record)' WHERE id = 'a'")
        let store = try await SQLiteQueueStore(directory: directory.path)
        let lane = try await store.restart()[0].id
        #expect(try await store.claim(of: lane).requests.map(\.id) == ["b"])
        let held = try #require(try await store.details(of: "a")).summary
        #expect(held.holdReason == .configuration && held.attempts == 0)
        #expect(held.lastError?.contains(reason) == true, "\(held.lastError ?? "")")
        let isKnown = !record.contains("later")
        #expect(try await store.archive.inspect().findings.map(\.subject) == (isKnown ? ["a"] : []))
        await store.close()
    }

    @Test(arguments: ["zz\n\nX-Secret: s\n", "X-Secret: s", "\nX-Secret\n"])
    func `a request whose content has no valid form is held and shown, and harms no other`(
        content: String
    ) async throws {
        let first = try await SQLiteQueueStore(directory: directory.path)
        try await first.enqueue(try new("a"), try new("b"))
        await first.close()
        try edit(directory, "UPDATE request SET content = '\(content)' WHERE id = 'a'")
        let store = try await SQLiteQueueStore(directory: directory.path)
        let shown = try #require(try await store.details(of: "a"))
        #expect(shown.unreadable?.contains("the database row was changed") == true)
        let lane = try await store.restart()[0].id
        #expect(try await store.claim(of: lane).requests.map(\.id) == ["b"])
        let held = try #require(try await store.details(of: "a")).summary
        #expect(held.holdReason == .key && held.lastError?.contains("X-Secret") == false)
        let report = try await store.archive.inspect()
        #expect(report.findings.map(\.subject) == ["a"])
        #expect(report.findings.allSatisfy { !$0.message.contains("X-Secret") })
        let conflict = await #expect(throws: QueueError.self) { try await store.enqueue(try new("a")) }
        #expect(conflict?.code == .storeUnavailable)
        try await store.enqueue(try new("c"))
        await store.close()
    }

    @Test func `the options survive a restart, the history, a retry and an export`() async throws {
        var given = [EnqueueOptions(id: "0"), Self.all, EnqueueOptions(id: "2")]
        (given[1].id, given[1].constraints, given[2].httpVersion) = ("1", RequestConstraints(), .http2)
        (given[1].isRecorded, given[1].maximumAttempts) = (true, 9)
        let store = try await SQLiteQueueStore(directory: directory.path)
        for options in given { try await store.enqueue(try new(options.id!) { $0 = options }) }
        await store.close()
        let again = try await SQLiteQueueStore(directory: directory.path)
        let lane = try await again.restart()[0].id
        let claimed = try await again.claim(of: lane).requests
        #expect(claimed.map(\.options) == given)
        for request in claimed { try await again.conclude(request, .dead(reason: "HTTP 404")) }
        #expect(try await again.details(of: "1")?.options == given[1])
        _ = try await again.edit(.retry(newKey: false), claimed.map(\.id))
        #expect(try await again.claim(of: lane).requests.map(\.options) == given)
        await again.close()
        let export = try await withQueue(directory) { queue, _ in try await queue.exported() }
        let path = try file(export, in: files)
        try await withQueue(TemporaryDirectory()) { queue, _ in
            _ = try await queue.importRequests(from: path)
            for options in given { #expect(try await queue.request(options.id!)?.options == options) }
        }
    }

    @Test(arguments: [
        (#""http_version":"1.1""#, #""http_version":"3""#, "`http_version` is `3`; it must be one of 1.1, 2"),
        (
            #""connect_timeout_seconds":0.001"#, #""connect_timeout_seconds":0"#,
            "the connect timeout is 0 seconds"
        ),
    ])
    func `an import names the option that it refuses`(old: String, new: String, words: String) async throws {
        let export = try await withQueue(directory) { queue, store in
            try await store.enqueue(try self.request())
            return lines(try await queue.exported())
        }
        let invalid = export.map { $0.replacing(old, with: new) }
        #expect(invalid != export)
        let path = try file(try sealed(invalid), in: files)
        try await withQueue(TemporaryDirectory()) { queue, _ in
            let error = await #expect(throws: QueueError.self) { try await queue.importRequests(from: path) }
            #expect(error?.code == .invalidImport)
            #expect(error?.message.contains(words) == true, "\(error as Any)")
        }
    }

    @Test func `an import holds a request with an option that it does not know`() async throws {
        let export = try await withQueue(directory) { queue, store in
            try await store.enqueue(try self.request())
            return lines(try await queue.exported())
        }
        let newer = export.map { $0.replacing(#""http_version":"1.1""#, with: #""later":1"#) }
        let path = try file(try sealed(newer), in: files)
        try await withQueue(TemporaryDirectory()) { queue, store in
            #expect(try await queue.importRequests(from: path).imported == 1)
            let held = try #require(try await queue.request("a"))
            #expect(held.summary.holdReason == .user && held.options.maximumAttempts == 3)
            #expect(held.summary.lastError?.contains("the option `later` is unknown") == true)
            #expect(try await store.restart(releasing: HoldReason.releasableByRestart).isEmpty)
        }
    }

    private func request() throws -> NewRequest {
        var options = Self.all
        options.id = "a"
        return try new("a") { $0 = options }
    }
}
