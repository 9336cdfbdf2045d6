internal import Foundation
internal import Logging
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

/// What hooks report, with a queue that only records.
@Suite(.timeLimit(.minutes(5))) struct HookReporterTests {
    /// The requests that the reporter has enqueued, with their options.
    private final class Queue: Sendable {
        let requests = Recorder<(request: QueueRequest, options: EnqueueOptions)>()
        /// What the queue throws instead of storing a request.
        let error = Lock<QueueError?>(nil)
        /// The number of ids that are in use, and these ids.
        let conflicts = Lock(0)
        let refusedIDs = Recorder<String?>()

        var ids: [String?] { requests.values.map(\.options.id) }

        var bodies: [String] {
            requests.values.map { entry in
                guard case .data(let body) = entry.request.body else { return "" }
                return String(decoding: body, as: UTF8.self)
            }
        }

        /// The JSON object of each request.
        var objects: [[String: Any]] {
            get throws {
                try bodies.map {
                    try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] ?? [:]
                }
            }
        }

        /// The event, the hosts and the cause of each request.
        var events: [String] {
            get throws {
                try objects.map { object in
                    let hosts = object["hosts"] as? [[String: Any]] ?? []
                    let names = hosts.compactMap { $0["host"] as? String }.joined(separator: "+")
                    return "\(object["event"] ?? "") \(names) \(object["cause"] ?? "")"
                }
            }
        }

        func store(_ request: QueueRequest, _ options: EnqueueOptions) throws {
            guard
                conflicts.withLock({
                    $0 -= 1; return $0 < 0
                })
            else {
                refusedIDs.record(options.id)
                throw QueueError(.idConflict, "the id is in use")
            }
            if let error = error.withLock({ $0 }) { throw error }
            requests.record((request, options))
        }
    }

    private let queue = Queue()
    private let messages = Recorder<String>()
    /// The group waits.
    private let waits = ManualWaits()

    private func reporter(_ hooks: Hook..., history: HostHistory? = nil) async -> HookReporter {
        let reporter = HookReporter(
            logger: .recording(messages),
            history: history,
            clock: { .at(HostHistoryTests.midnight) },
            sleep: { [waits] in try await waits.sleep($0) },
            enqueue: { [queue] in try queue.store($0, $1) }
        )
        await reporter.use(hooks)
        return reporter
    }

    /// Returns a reporter of the next run of the service.
    private func restarted(_ hook: Hook, _ history: HostHistory, _ host: WatchedHost) async throws
        -> HookReporter
    {
        let reporter = await reporter(hook, history: history)
        try await reporter.resume([host])
        await reporter.watch([host.name])
        return reporter
    }

    private static func hook(
        _ url: String = "https://alerts.example.com/a",
        causes: Set<OutageCause> = [.remote],
        groupWait: Duration = .zero
    ) -> Hook {
        var hook = Hook(.webhook(Webhook(url: url, credential: "alerts")))
        hook.causes = causes
        hook.groupWait = groupWait
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

    // MARK: Changes

    @Test func `the beginning and the end of an outage are sent in order, as JSON`() async throws {
        let reporter = await reporter(Self.hook())
        let db = try Self.host("db")
        await reporter.report(Self.change(.down(.remote), at: 1000, "timed out \"x\""), of: db)
        await reporter.report(Self.change(.up, at: 61_000), of: db)
        let began = "1970-01-01T00:00:01.000Z", ended = "1970-01-01T00:01:01.000Z"
        let down = """
            {"cause":"remote","count":1,"down_since":"\(began)","event":"down","hosts":[{"check":"route 192.0.2.1",\
            "down_since":"\(began)","host":"db","outage":1000,"reason":"timed out \\"x\\""}],\
            "reason":"timed out \\"x\\"","text":"db is down (remote: timed out \\"x\\") since \(began)",\
            "truncated_hosts":0,"v":1}
            """
        let up = """
            {"cause":"remote","count":1,"down_since":"\(began)","event":"up","hosts":[{"check":"route 192.0.2.1",\
            "down_since":"\(began)","host":"db","outage":1000,"up_since":"\(ended)"}],\
            "text":"db is up again; it was down (remote) since \(began)","truncated_hosts":0,\
            "up_since":"\(ended)","v":1}
            """
        #expect(queue.bodies == [down, up])
        for (request, options) in queue.requests.values {
            #expect(request.method == "POST" && request.url == "https://alerts.example.com/a")
            #expect(options.isFIFO && options.lane == HookReporter.lane && options.credential == "alerts")
            #expect(options.id != nil && options.idempotencyKey == .value(options.id ?? ""))
        }
        #expect(Set(queue.ids).count == 2 && messages.values == [])
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
        let outages = try queue.objects.map { ($0["hosts"] as? [[String: Any]])?.first?["outage"] as? Int }
        #expect(outages == [1000, 1000])
    }

    // MARK: Groups

    @Test func `each hook sends one message about its hosts for each event and cause`() async throws {
        let all = Self.hook(causes: [.local, .remote], groupWait: .seconds(30))
        var some = Self.hook("https://alerts.example.com/b", causes: [.local], groupWait: .seconds(5))
        some.hosts = ["api", "web"]
        let reporter = await reporter(all, some)
        for name in ["db", "api", "web"] {
            await reporter.report(Self.change(.down(.local), at: 1000, "no carrier"), of: try Self.host(name))
        }
        await reporter.report(Self.change(.down(.remote), at: 2000, "timed out"), of: try Self.host("own"))
        #expect(try queue.events == [])
        try await waits.started.wait { $0.count == 2 }
        #expect(Set(waits.started.values.map(\.duration)) == [.seconds(30), .seconds(5)])
        try await waits.end(2)
        try await queue.requests.wait { $0.count == 3 }
        let sent = zip(queue.requests.values.map(\.request.url), try queue.events).map {
            "\($0.suffix(1)) \($1)"
        }
        #expect(
            sent.sorted() == ["a down db+api+web local", "a down own remote", "b down api+web local"],
            "\(sent)"
        )
        let texts = try queue.objects.compactMap { $0["text"] as? String }
        let since = "since 1970-01-01T00:00:01.000Z"
        #expect(texts.contains("3 hosts are down (local: no carrier) \(since): db, api, web"), "\(texts)")
        // The end waits again.
        let names = ["db", "api", "web"]
        await reporter.report(
            try names.map { (change: Self.change(.up, at: 9000), host: try Self.host($0)) }
        )
        try await waits.end(4)
        try await queue.requests.wait { $0.count == 5 }
        let ends = try queue.events.suffix(2).sorted()
        #expect(ends == ["up api+web local", "up db+api+web local"] && waits.started.values.count == 4)
    }

    @Test func `a host that is up again, or down again, within the group wait is not reported`() async throws
    {
        let reporter = await reporter(Self.hook(groupWait: .seconds(30)))
        let (db, api, web) = try (Self.host("db"), Self.host("api"), Self.host("web"))
        await reporter.report(Self.change(.down(.remote), at: 1000), of: db)
        await reporter.report(Self.change(.down(.remote), at: 2000), of: api)
        await reporter.report(Self.change(.up, at: 3000), of: db)
        try await waits.end(1)
        try await queue.requests.wait { $0.count == 1 }
        await reporter.report(Self.change(.up, at: 40_000), of: api)
        await reporter.report(Self.change(.down(.remote), at: 41_000), of: api)
        await reporter.report(Self.change(.down(.remote), at: 42_000), of: web)
        try await waits.end(2)
        try await queue.requests.wait { $0.count == 2 }
        // The receiver knows of one outage.
        await reporter.report(Self.change(.up, at: 80_000), of: api)
        try await waits.end(3)
        try await queue.requests.wait { $0.count == 3 }
        #expect(try queue.events == ["down api remote", "down web remote", "up api remote"])
        #expect(try queue.objects.last?["down_since"] as? String == "1970-01-01T00:00:02.000Z")
    }

    @Test func `a hook without a group wait reports a host that is down and up in the same moment`()
        async throws
    {
        let reporter = await reporter(Self.hook())
        let (db, api) = try (Self.host("db"), Self.host("api"))
        await reporter.report([
            (Self.change(.down(.remote), at: 1000), db), (Self.change(.down(.remote), at: 1001), api),
            (Self.change(.up, at: 1002), db),
        ])
        #expect(try queue.events == ["down db+api remote", "up db remote"])
    }

    @Test func `a message about very many hosts has a limited size, and the number of the hosts`()
        async throws
    {
        let reporter = await reporter(Self.hook())
        let reason = String(repeating: "\u{1}\u{1F600}", count: 2000)
        await reporter.report(
            try (0..<10_000).map { index in
                (Self.change(.down(.remote), at: 1000, reason), try Self.host("host-\(index)"))
            }
        )
        #expect(queue.requests.values.count == 1)
        let object = try #require(try queue.objects.first)
        let listed = (object["hosts"] as? [Any])?.count ?? 0
        #expect(object["count"] as? Int == 10_000 && object["truncated_hosts"] as? Int == 10_000 - listed)
        #expect(listed > 20)
        let text = object["text"] as? String ?? ""
        #expect(text.hasPrefix("10000 hosts are down") && text.hasSuffix("host-9 and 9990 more"))
        #expect(queue.bodies.allSatisfy { $0.utf8.count < 64 * 1024 })
    }

    @Test func `a new hook reports the outages that last, and a changed group wait keeps what was reported`()
        async throws
    {
        let reporter = await reporter(Self.hook(groupWait: .zero))
        let db = try Self.host("db")
        await reporter.report(Self.change(.down(.remote), at: 1000), of: db)
        var changed = Self.hook(groupWait: .seconds(1))
        changed.action = .webhook(Webhook(url: "https://alerts.example.com/a", credential: "other"))
        await reporter.use([changed, Self.hook("https://alerts.example.com/new")])
        await reporter.watch(["db"])
        #expect(try queue.events == ["down db remote", "down db remote"])
        #expect(queue.requests.values.map { $0.request.url.suffix(3) } == ["m/a", "new"])
        #expect(waits.started.values.isEmpty)
    }

    // MARK: Restarts

    /// Returns a history with an outage of the host `db`, which began at midnight.
    private static func history(in directory: ScratchDirectory) async throws -> HostHistory {
        let history = try HostHistory(path: directory.file("history.sqlite"))
        try await history.write(
            HostHistoryTests.batch(.failure("timed out"), of: "db"),
            now: .at(HostHistoryTests.midnight)
        )
        return history
    }

    @Test func `a restart neither loses nor repeats a message, also during a group wait`() async throws {
        let directory = try ScratchDirectory()
        let history = try await Self.history(in: directory)
        let (hook, db) = (Self.hook(groupWait: .seconds(30)), try Self.host("db"))
        let down = Self.change(.down(.remote), at: HostHistoryTests.midnight)
        let first = await reporter(hook, history: history)
        await first.report(down, of: db)
        try await waits.started.wait { $0.count == 1 }
        await first.stop()
        #expect(try queue.events == [])
        let second = try await restarted(hook, history, db)
        try await waits.end(2)
        try await queue.requests.wait { $0.count == 1 }
        await second.stop()
        // The host is up, and the service stops before it has reported that.
        let third = try await restarted(hook, history, db)
        let up = Self.change(.up, at: HostHistoryTests.midnight + 60_000)
        await third.report(up, of: db)
        try await waits.started.wait { $0.count == 3 }
        await third.stop()
        try await history.write(
            HostHistoryTests.batch(.success(latency: nil), of: "db"),
            now: .at(HostHistoryTests.midnight + 60_000)
        )
        let fourth = try await restarted(hook, history, db)
        await fourth.report(up, of: db)
        try await waits.end(4)
        try await queue.requests.wait { $0.count == 2 }
        await fourth.stop()
        let fifth = try await restarted(hook, history, db)
        await fifth.report(up, of: db)
        await fifth.stop()
        #expect(try queue.events == ["down db remote", "up db remote"] && waits.started.values.count == 4)
        let left = (try await history.hookReports(), try await history.hookMessages())
        #expect(left.0 == [:] && left.1 == [])
    }

    @Test func `without a history, a stop reports what waits`() async throws {
        let reporter = await reporter(Self.hook(groupWait: .seconds(30)))
        await reporter.report(Self.change(.down(.remote), at: 1000), of: try Self.host("db"))
        await reporter.stop()
        #expect(try queue.events == ["down db remote"])
    }

    @Test func `messages that the queue refuses are tried again in their order, also by the next run`()
        async throws
    {
        let directory = try ScratchDirectory()
        let history = try await Self.history(in: directory)
        let (hook, db) = (Self.hook(), try Self.host("db"))
        let first = await reporter(hook, history: history)
        queue.error.withLock { $0 = QueueError(.queueFull, "the queue is full") }
        await first.report(Self.change(.down(.remote), at: HostHistoryTests.midnight), of: db)
        await first.retry()
        queue.error.withLock { $0 = nil }
        // Does not overtake the first message.
        await first.report(Self.change(.up, at: HostHistoryTests.midnight + 1000), of: db)
        #expect(try queue.events == [])
        try await history.write(
            HostHistoryTests.batch(.success(latency: nil), of: "db"),
            now: .at(HostHistoryTests.midnight + 1000)
        )
        let ids = try await history.hookMessages().map(\.id)
        let second = try await restarted(hook, history, db)
        #expect(try queue.events == ["down db remote", "up db remote"])
        #expect(queue.ids == ids && ids.count == 2)
        await first.retry()
        #expect(try queue.events.count == 4)
        #expect(queue.ids == ids + ids)
        #expect(messages.values == ["the webhook for host `db` (down) was not queued: the queue is full"])
        #expect(try await history.hookMessages() == [])
        await second.stop()
    }

    @Test func `at most 100 messages wait for the queue, the newest ones`() async throws {
        let reporter = await reporter(Self.hook())
        queue.error.withLock { $0 = QueueError(.queueFull, "the queue is full") }
        for index in 0..<102 {
            await reporter.report(Self.change(.down(.remote), at: 1000), of: try Self.host("\(index)"))
        }
        queue.error.withLock { $0 = nil }
        await reporter.retry()
        let events = try queue.events
        #expect(events == (2..<102).map { "down \($0) remote" })
        let dropped = "a webhook was dropped: 100 others wait for the queue"
        #expect(messages.values.dropFirst() == [dropped, dropped])
    }

    @Test func `a message whose id is in use gets another id, and a warning`() async throws {
        let reporter = await reporter(Self.hook())
        queue.conflicts.withLock { $0 = 2 }
        await reporter.report(Self.change(.down(.remote), at: 1000), of: try Self.host("db"))
        #expect(messages.values.count == 2)
        #expect(
            messages.values.allSatisfy { $0.contains("a webhook gets another id, because its id is in use") }
        )
        #expect(queue.ids.count == 1 && Set(queue.ids + queue.refusedIDs.values).count == 3)
    }

    @Test func `a message with another id waits under it, also after a restart`() async throws {
        let directory = try ScratchDirectory()
        let history = try HostHistory(path: directory.file("history.sqlite"))
        let reporter = await reporter(Self.hook(), history: history)
        queue.conflicts.withLock { $0 = 1 }
        queue.error.withLock { $0 = QueueError(.queueFull, "the queue is full") }
        await reporter.report(Self.change(.down(.remote), at: 1000), of: try Self.host("db"))
        let ids = try await history.hookMessages().map(\.id)
        #expect(ids.count == 1 && ids != queue.refusedIDs.values)
        queue.error.withLock { $0 = nil }
        await reporter.retry()
        #expect(queue.ids == ids)
        #expect(try await history.hookMessages().isEmpty)
    }
}

extension HookReporter {
    fileprivate func report(_ change: HostTracker.Change, of host: WatchedHost) async {
        await report([(change: change, host: host)])
    }
}
