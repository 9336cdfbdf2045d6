internal import Foundation
internal import Logging
internal import NetwatchTestSupport
internal import NetworkReachability
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

/// What hooks report, with a queue that only records.
struct HookReporterTests {
    /// The requests that the reporter has enqueued, with their options.
    private final class Queue: Sendable {
        let requests = Recorder<(request: QueueRequest, options: EnqueueOptions)>()

        var ids: [String?] { requests.values.map(\.options.id) }

        /// The JSON object of each request.
        var objects: [[String: Any]] {
            get throws {
                try requests.values.map { entry in
                    guard case .data(let body) = entry.request.body else { return [:] }
                    return try JSONSerialization.jsonObject(with: body) as? [String: Any] ?? [:]
                }
            }
        }

        var events: [String] {
            get throws { try objects.map { "\($0["event"] ?? "") \($0["host"] ?? "") \($0["cause"] ?? "")" } }
        }
    }

    private let queue = Queue()
    private let messages = Recorder<String>()

    private func reporter(_ hooks: Hook..., failing error: QueueError? = nil) async -> HookReporter {
        // A conflict means that the previous run has stored the webhook.
        let reporter = HookReporter(logger: .recording(messages), isStored: { _ in true }) {
            [queue] request, options in
            if let error { throw error }
            queue.requests.record((request, options))
        }
        await reporter.use(hooks)
        return reporter
    }

    private static func hook(
        _ url: String = "https://alerts.example.com/a",
        causes: Set<OutageCause> = [.remote]
    ) -> Hook {
        var hook = Hook(.webhook(Webhook(url: url, credential: "alerts")))
        hook.causes = causes
        return hook
    }

    private static func host(_ name: String) throws -> WatchedHost {
        WatchedHost(name: name, check: .route(try NetworkHost(validating: "192.0.2.1")))
    }

    private static func change(
        _ state: HostState,
        at time: Int64,
        _ reason: String? = nil,
        step: Int64 = 0
    ) -> HostTracker.Change {
        let now = HostTracker.Moment.at(time, step: step)
        return HostTracker.Change(
            old: .unknown,
            new: state,
            oldSince: nil,
            since: HostTracker.Start(now),
            reason: reason,
            time: now
        )
    }

    @Test func `the beginning and the end of an outage are sent in order, as JSON`() async throws {
        let reporter = await reporter(Self.hook())
        let db = try Self.host("db")
        await reporter.report(Self.change(.down(.remote), at: 1000, "timed out \"x\""), of: db)
        await reporter.report(Self.change(.up, at: 61_000), of: db)
        let objects = try queue.objects
        let down = try #require(objects.first), up = try #require(objects.last)
        #expect(down["v"] as? Int == 1 && down["event"] as? String == "down")
        #expect(down["host"] as? String == "db" && down["check"] as? String == "route 192.0.2.1")
        #expect(down["cause"] as? String == "remote" && down["reason"] as? String == "timed out \"x\"")
        #expect(down["down_since"] as? String == "1970-01-01T00:00:01.000Z")
        #expect(Set(down.keys) == ["v", "event", "host", "check", "cause", "reason", "down_since", "text"])
        #expect(
            down["text"] as? String
                == "db is down (remote: timed out \"x\") since 1970-01-01T00:00:01.000Z"
        )
        #expect(up["event"] as? String == "up" && up["up_since"] as? String == "1970-01-01T00:01:01.000Z")
        #expect(up["down_since"] as? String == "1970-01-01T00:00:01.000Z")
        #expect(Set(up.keys) == ["v", "event", "host", "check", "cause", "down_since", "up_since", "text"])
        for (request, options) in queue.requests.values {
            #expect(request.method == "POST" && request.url == "https://alerts.example.com/a")
            #expect(options.isFIFO && options.lane == HookReporter.lane && options.credential == "alerts")
            #expect(options.id != nil && options.idempotencyKey == .value(options.id ?? ""))
        }
        #expect(Set(queue.ids).count == 2)
        #expect(messages.values == [])
    }

    @Test func `an outage with several causes is one outage`() async throws {
        let reporter = await reporter(Self.hook(causes: [.local, .remote]))
        let db = try Self.host("db")
        await reporter.report(Self.change(.down(.local), at: 1000), of: db)
        await reporter.report(Self.change(.unknown, at: 2000), of: db)
        await reporter.report(Self.change(.down(.remote), at: 3000), of: db)
        await reporter.report(Self.change(.up, at: 4000), of: db)
        await reporter.report(Self.change(.up, at: 5000), of: db)
        #expect(try queue.events == ["down db local", "up db local"])
        #expect(try queue.objects.last?["down_since"] as? String == "1970-01-01T00:00:01.000Z")
    }

    @Test func `by default, a hook ignores outages of the own link`() async throws {
        let reporter = await reporter(Self.hook())
        let db = try Self.host("db")
        await reporter.report(Self.change(.down(.local), at: 1000), of: db)
        await reporter.report(Self.change(.up, at: 2000), of: db)
        #expect(try queue.events == [])
        await reporter.report(Self.change(.down(.local), at: 3000), of: db)
        await reporter.report(Self.change(.down(.remote), at: 4000), of: db)
        await reporter.report(Self.change(.up, at: 5000), of: db)
        #expect(try queue.events == ["down db remote", "up db remote"])
        #expect(try queue.objects.first?["down_since"] as? String == "1970-01-01T00:00:04.000Z")
    }

    @Test func `a hook reports only its hosts and its events`() async throws {
        var hook = Self.hook()
        hook.hosts = ["db"]
        hook.events = [.up]
        let reporter = await reporter(hook)
        for name in ["db", "api"] {
            await reporter.report(Self.change(.down(.remote), at: 1000), of: try Self.host(name))
            await reporter.report(Self.change(.up, at: 2000), of: try Self.host(name))
        }
        #expect(try queue.events == ["up db remote"])
    }

    @Test func `the first success after the start, and changes of a forgotten host, are not reported`()
        async throws
    {
        let reporter = await reporter(Self.hook())
        let (db, api) = try (Self.host("db"), Self.host("api"))
        await reporter.report(Self.change(.up, at: 1000), of: db)
        await reporter.report(Self.change(.down(.remote), at: 2000), of: api)
        await reporter.watch(["db"])
        await reporter.report(Self.change(.up, at: 3000), of: api)
        await reporter.report(Self.change(.down(.remote), at: 4000), of: api)
        #expect(try queue.events == ["down api remote"])
        await reporter.watch(["db", "api"])
        await reporter.report(Self.change(.down(.remote), at: 5000), of: api)
        #expect(try queue.events == ["down api remote", "down api remote"])
    }

    @Test func `a new run reports an outage under the id of the previous run`() async throws {
        let first = await reporter(Self.hook())
        let db = try Self.host("db")
        await first.report(Self.change(.down(.remote), at: 1000, "connection refused"), of: db)
        let second = await reporter(Self.hook())
        await second.resume(HookOutage([.remote: .at(1000)]), of: db, now: .at(60_000))
        // The monitor reports the end again if the previous run has not recorded it. The time then differs.
        await first.report(Self.change(.up, at: 70_000), of: db)
        await second.report(Self.change(.up, at: 80_000), of: db)
        let ids = queue.ids
        #expect(ids.count == 4 && ids[0] == ids[1] && ids[2] == ids[3] && ids[0] != ids[2])
    }

    @Test(arguments: [1_209_600_000, -400] as [Int64])
    func `both times of an outage are by the clock as it is set at its end`(step: Int64) async throws {
        let reporter = await reporter(Self.hook())
        let db = try Self.host("db")
        await reporter.report(Self.change(.down(.remote), at: 1000), of: db)
        await reporter.report(Self.change(.up, at: 1300, step: step), of: db)
        let up = try #require(try queue.objects.last)
        // A correction of less than 2 s does not change the start, which is then not after the end.
        let times =
            step < 2000
            ? ["1970-01-01T00:00:00.900Z", "1970-01-01T00:00:00.900Z"]
            : ["1970-01-15T00:00:01.000Z", "1970-01-15T00:00:01.300Z"]
        #expect([up["down_since"] as? String, up["up_since"] as? String] == times)
        // The id is that of a run for which the clock was right from the beginning.
        let second = await self.reporter(Self.hook())
        await second.resume(HookOutage([.remote: .at(1000)]), of: db, now: .at(1200))
        await second.report(Self.change(.up, at: 1400), of: db)
        let ids = queue.ids
        #expect(ids[0] == ids[2] && ids[1] == ids[3])
    }

    @Test func `a new run reports only the end of an old outage, whose webhook the queue may have forgotten`()
        async throws
    {
        let reporter = await reporter(Self.hook())
        let db = try Self.host("db")
        let outage = HookOutage([.remote: .at(1000)])
        await reporter.resume(outage, of: db, now: .at(1000 + 13 * 3_600_000))
        #expect(try queue.events == [])
        await reporter.report(Self.change(.up, at: 1000 + 14 * 3_600_000), of: db)
        #expect(try queue.events == ["up db remote"])
    }

    @Test func `a new run knows all causes of an outage`() async throws {
        let first = await reporter(Self.hook(causes: [.local, .remote]))
        let db = try Self.host("db")
        await first.report(Self.change(.down(.local), at: 1000), of: db)
        await first.report(Self.change(.down(.remote), at: 2000), of: db)
        let second = await reporter(Self.hook(causes: [.local, .remote]))
        await second.resume(HookOutage([.local: .at(1000), .remote: .at(2000)]), of: db, now: .at(60_000))
        await second.report(Self.change(.down(.remote), at: 70_000), of: db)
        await second.report(Self.change(.up, at: 80_000), of: db)
        #expect(try queue.events == ["down db local", "down db local", "up db local"])
        #expect(queue.ids[0] == queue.ids[1])
    }

    @Test func `the ids of different outages, hosts and URLs differ`() async throws {
        let reporter = await reporter(Self.hook(), Self.hook("https://alerts.example.com/b"))
        for (name, time) in [("db", 1000), ("api", 1000), ("db", 3000)] as [(String, Int64)] {
            await reporter.report(Self.change(.down(.remote), at: time), of: try Self.host(name))
            await reporter.report(Self.change(.up, at: time + 1000), of: try Self.host(name))
        }
        #expect(queue.ids.count == 12 && Set(queue.ids).count == 12)
    }

    @Test(arguments: [(QueueError.Code.idConflict, 0), (QueueError.Code.queueFull, 1)])
    func `a webhook that is not queued is logged, unless the queue has it`(
        code: QueueError.Code,
        count: Int
    ) async throws {
        let reporter = await reporter(Self.hook(), failing: QueueError(code, "the queue is full"))
        await reporter.report(Self.change(.down(.remote), at: 1000), of: try Self.host("db"))
        let message = "the webhook for host `db` (down) was not queued: the queue is full"
        #expect(messages.values == Array(repeating: message, count: count))
    }

    @Test func `a webhook whose id belongs to a request of a user gets another id, and a warning`()
        async throws
    {
        // The user can calculate the id from public values.
        let reference = await reporter(Self.hook())
        let (db, change) = (try Self.host("db"), Self.change(.down(.remote), at: 1000))
        await reference.report(change, of: db)
        let id = try #require(queue.ids.first ?? nil)
        let directory = try ScratchDirectory()
        let stored = try await directory.openQueue()
        var options = EnqueueOptions(lane: "hooks", isFIFO: true, id: id)
        options.submitter = Submitter(user: 60_001, quota: UserQuota())
        let harmless = QueueRequest(method: "POST", url: "https://alerts.example.com/harmless")
        _ = try await stored.enqueue(harmless, options: options)
        let reporter = HookReporter(logger: .recording(messages), queue: stored)
        await reporter.use([Self.hook()])
        await reporter.report(change, of: db)
        let requests = try await stored.list().requests
        let alert = try #require(requests.last)
        #expect(requests.map(\.id) == [id, alert.id] && alert.id != id)
        #expect(alert.lane == HookReporter.lane && alert.submitter == nil && alert.url.hasSuffix("/a"))
        #expect(try await stored.request(alert.id)?.idempotencyKey == alert.id)
        let warning = "the webhook for host `db` (down) has the id `\(alert.id)`: `\(id)` was in use"
        #expect(messages.values == [warning])
        // The service itself has stored this one, with another reason. It is not stored again.
        let api = try Self.host("api")
        for reason in ["timed out", "connection refused"] {
            await reporter.report(Self.change(.down(.remote), at: 2000, reason), of: api)
            await reporter.watch([])
            await reporter.watch(["api"])
        }
        #expect(try await stored.list().requests.count == 3 && messages.values.count == 1)
        await stored.stop()
    }
}
