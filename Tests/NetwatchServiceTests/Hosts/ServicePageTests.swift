internal import Foundation
internal import Logging
internal import NIOHTTP1
internal import NetwatchTestSupport
internal import NetworkReachability
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

/// The routes for hosts, metrics and the status page.
@Suite(.timeLimit(.minutes(5))) struct ServicePageTests {
    private let directory = try! ScratchDirectory()

    /// Starts to watch hosts, and calls a function with a router for them.
    ///
    /// - Parameters:
    ///   - up: The name of a host that must be up before that; `nil` for none.
    ///   - hasHistory: Whether the history can be recorded.
    ///   - prepare: Called with the queue, which sends nothing.
    private func serving(
        _ hosts: [WatchedHost],
        untilUp up: String? = nil,
        hosts allowed: HostAllowList? = nil,
        hasHistory: Bool = true,
        preparing prepare: (OfflineQueue) async throws -> Void = { _ in },
        _ body: (ControlRouter) async throws -> Void
    ) async throws {
        let configuration = OfflineQueue.Configuration(directory: directory.file("state"))
        let queue = try await OfflineQueue(configuration: configuration)
        try await prepare(queue)
        let history = hasHistory ? try HostHistory(path: directory.file("history.sqlite")) : nil
        let log = Recorder<String>()
        let monitor = HostMonitor(monitor: .shared, history: history, logger: .recording(log))
        let view = HostsView(monitor: monitor, history: history)
        let state = ServiceState(
            queue: queue,
            monitor: .shared,
            hosts: view,
            version: "1.2.3",
            configuration: ConfigurationInUse()
        )
        // Its metric is missing before the first success.
        state.pushes.succeeded(at: .now)
        await monitor.update(hosts)
        let running = Task { await monitor.run(hosts) }
        if let up { try await log.wait { $0.contains("host `\(up)` is up") } }
        try await body(ControlRouter(state.readOnlyRoutes, hosts: allowed))
        running.cancel()
        await running.value
    }

    private func get(
        _ router: ControlRouter,
        _ target: String,
        method: HTTPMethod = .GET,
        host: String? = nil
    ) async throws -> (status: UInt, text: String, headers: HTTPHeaders) {
        let request = ControlRequest(
            method: method,
            target: try #require(RequestTarget(target)),
            headers: host.map { ["host": $0] } ?? [:],
            peer: nil
        )
        let response = await router.respond(to: request)
        return (response.status.code, String(decoding: response.body, as: UTF8.self), response.headers)
    }

    private static func tcp(_ name: String, port: UInt16) throws -> WatchedHost {
        WatchedHost(name: name, check: .tcp(try NetworkHost(validating: "127.0.0.1"), port: port))
    }

    // MARK: Hosts

    @Test func `a host is listed with its state, and has a history`() async throws {
        let hosts = [WatchedHost(name: "db", check: .route(try NetworkHost(validating: "127.0.0.1")))]
        try await serving(hosts, untilUp: "db") { router in
            let listed = try await get(router, "/v1/hosts")
            let message = try ControlMessage.decoder.decode(
                ControlMessage.Hosts.self,
                from: Data(listed.text.utf8)
            )
            let host = try #require(message.hosts.first)
            #expect(host.name == "db" && host.state == "up" && host.cause == nil)
            #expect(host.check == "route 127.0.0.1")
            #expect(host.intervalSeconds == 30 && host.fall == 3)
            let history = try await get(router, "/v1/hosts/db/history?window=7d")
            let steps = try ControlMessage.decoder.decode(
                ControlMessage.History.self,
                from: Data(history.text.utf8)
            )
            #expect(steps.steps.count == 84 && steps.window == "7d")
        }
    }

    @Test(arguments: [
        ("/v1/hosts/nothing", 404, "unknown_host"), ("/v1/hosts/nothing/history", 404, "unknown_host"),
        ("/v1/hosts/db/history?window=1h", 400, "invalid_window"),
        ("/v1/hosts/db/history?windows=24h", 400, "unknown_parameter"),
        ("/badge/db/size.svg", 404, "not_found"),
    ])
    func `wrong names are refused`(target: String, status: UInt, code: String) async throws {
        try await serving([try Self.tcp("db", port: 1)]) { router in
            let answer = try await get(router, target)
            #expect(answer.status == status)
            #expect(answer.text.contains(#""code":"\#(code)""#), "\(answer.text)")
        }
    }

    // MARK: Page

    @Test func `the page shows names and reasons as text`() async throws {
        let check = WatchedHost.Check.web(url: "http://127.0.0.1:1/?a=<b>&c", expectedStatus: 200...299)
        try await serving([WatchedHost(name: "api", check: check)]) { router in
            let page = try await get(router, "/")
            #expect(page.status == 200)
            #expect(page.text.contains("http://127.0.0.1:1/?a=&lt;b&gt;&amp;c"))
            #expect(!page.text.contains("<b>") && !page.text.contains("The history cannot be recorded"))
            #expect(page.headers["content-security-policy"].first?.contains("default-src 'none'") == true)
        }
    }

    @Test func `the page and badges show characters that are not printable as escapes`() async throws {
        let host = WatchedHost(name: "a\u{202E}b", check: .route(try NetworkHost(validating: "127.0.0.1")))
        try await serving([host]) { router in
            for target in ["/", "/badge/a%E2%80%AEb/status.svg"] {
                let text = try await get(router, target).text
                #expect(text.contains(#"a\u{202E}b"#) && !text.unicodeScalars.contains("\u{202E}"), "\(text)")
            }
        }
    }

    @Test func `the page without hosts says how to add one`() async throws {
        try await serving([]) { router in
            let page = try await get(router, "/").text
            #expect(page.contains("No host is watched") && page.contains("<code>[[host]]</code>"))
            #expect(page.contains("<p>The queue is empty.</p>"))
            #expect(page.contains(#"<noscript><meta http-equiv="refresh" content="30"></noscript>"#))
        }
    }

    @Test func `the page says that there is no history, and that the queue is paused`() async throws {
        let hosts = [WatchedHost(name: "db", check: .route(try NetworkHost(validating: "127.0.0.1")))]
        let pause = { (queue: OfflineQueue) in _ = try await queue.pause() }
        try await serving(hosts, untilUp: "db", hasHistory: false, preparing: pause) { router in
            let page = try await get(router, "/").text
            #expect(page.contains("The history cannot be recorded") && page.contains("● up"))
            #expect(page.contains("The queue is paused."))
        }
    }

    @Test func `a page with 20 hosts and a varied day is smaller than 60 kB`() async throws {
        let now = Int64(Date().timeIntervalSince1970) * 1000
        var batch = HistoryBatch()
        var generator = SeededGenerator(seed: 7)
        let names = (1...20).map { "host-\($0).example.com" }
        for name in names {
            for quarter in 0..<96 {
                let start = now - Int64(quarter + 1) * 900_000
                let state = [HostState.up, .down(.remote), .down(.local)].randomElement(using: &generator)!
                batch.add(.init(state: state, start: start, end: start + 900_000), of: name)
                let latency = Duration.microseconds(Int.random(in: 1000...900_000, using: &generator))
                batch.addProbe(of: name, at: start, latency: latency, isSuccess: true)
            }
        }
        try await HostHistory(path: directory.file("history.sqlite")).write(batch, now: .now)
        try await serving(try names.map { try Self.tcp($0, port: 1) }) { router in
            let page = try await get(router, "/").text
            #expect(names.allSatisfy(page.contains))
            #expect(page.matches(of: />p50 [0-9.]+ m?s, p95 [0-9.]+ m?s</).count == names.count)
            #expect(page.utf8.count < 60_000, "\(page.utf8.count) bytes")
            #expect(page.utf8.count > 30_000, "the bars are missing")
        }
    }

    @Test func `closed lanes are one entry for each origin and reason, or only their number`() throws {
        let start = Date(timeIntervalSince1970: 1_795_478_400)
        func lane(
            _ port: Int,
            _ label: String,
            _ cause: LaneClosure.Cause,
            _ seconds: Double
        ) throws -> QueueStatistics.ClosedLane {
            let closure = ["cause": cause.rawValue, "until": (start + seconds).rfc3339]
            let members: [String: Any] = [
                "host": "a.example", "lane": label, "origin": "https://a.example:\(port)", "fifo": false,
                "closure": closure,
            ]
            let text = try JSONSerialization.data(withJSONObject: members)
            return try ControlMessage.decoder.decode(QueueStatistics.ClosedLane.self, from: text)
        }
        let network = ControlMessage.Network(state: "reachable")
        let queue = ControlMessage.Queue(
            counts: QueueCounts(),
            requests: 0,
            bytes: 0,
            oldest: nil,
            paused: false,
            diskFull: false
        )
        func page(_ lanes: [QueueStatistics.ClosedLane], namesOrigins: Bool = true) -> String {
            let status = ControlMessage.Status(
                version: "1",
                pid: 1,
                started: start,
                network: network,
                auditCorrections: 0,
                hosts: [:],
                queue: queue
            )
            return StatusPage(
                status: status,
                hosts: [],
                outages: [],
                closedLanes: lanes,
                namesOrigins: namesOrigins,
                hasHistory: true,
                reload: nil,
                now: start
            ).html.text
        }
        let lanes = [
            try lane(443, "secret-1", .failures, 120), try lane(443, "secret-2", .failures, 60),
            try lane(443, "", .retryAfter, 60), try lane(80, "secret-1", .failures, 60),
        ]
        let text = page(lanes)
        let next = TextFormat.time(start + 60)
        let items = [
            "<li>https://a.example:443: lane closed by Retry-After; next attempt \(next)</li>",
            "<li>https://a.example:443 (2 lanes): waiting after failures; next attempt \(next)</li>",
            "<li>https://a.example:80: waiting after failures; next attempt \(next)</li>",
        ]
        #expect(text.contains("<ul>\(items.joined(separator: "\n"))</ul>"), "\(text)")
        #expect(!text.contains("secret"))
        let numbers = page(lanes, namesOrigins: false)
        let sentence = "<p>4 closed lanes; next attempt \(next)</p>"
        #expect(numbers.contains(sentence) && !numbers.contains("a.example"))
        let many = page(try (1...23).map { try lane($0, "", .failures, 60) })
        #expect(many.split(separator: "<li>").count == 21 && many.contains("and 3 others"))
    }

    @Test func `local outages that began together are one entry`() {
        func outage(_ host: String, _ cause: OutageCause, _ start: Int64) -> HostHistory.Outage {
            .init(host: host, cause: cause, start: start, end: nil, reason: nil)
        }
        let groups = OutageList.grouped([
            outage("a", .local, 100_000), outage("b", .local, 99_000), outage("c", .remote, 99_000),
            outage("a", .local, 50_000), outage("b", .local, 20_000),
        ])
        #expect(groups.map { $0.map(\.host) } == [["a", "b"], ["c"], ["a"], ["b"]])
        let list = OutageList(outages: groups[0], now: Date(milliseconds: 105_100))
        #expect(list.html.text.contains("<td>5 s so far</td>"), "\(list.html.text)")
    }

    @Test(arguments: [(1.0, "100 %"), (0.99999, "99.99 %"), (0.5, "50.00 %"), (0.9005, "90.05 %")])
    func `uptime is rounded down`(part: Double, text: String) {
        #expect(TextFormat.percentage(part) == text)
    }

    @Test(arguments: [
        ("status.svg", "db: up"), ("uptime.svg", "uptime 24h: 100 %"),
        ("uptime.svg?window=30d", "uptime 30d: 100 %"), ("latency.svg", "latency: unknown"),
    ])
    func `a badge is an image with its text as title`(target: String, text: String) async throws {
        let now = Int64(Date().timeIntervalSince1970) * 1000
        var batch = HistoryBatch()
        batch.add(.init(state: .up, start: now - 3_600_000, end: now - 1_800_000), of: "db")
        try await HostHistory(path: directory.file("history.sqlite")).write(batch, now: .now)
        let hosts = [WatchedHost(name: "db", check: .route(try NetworkHost(validating: "127.0.0.1")))]
        try await serving(hosts, untilUp: "db") { router in
            let badge = try await get(router, "/badge/db/\(target)")
            #expect(badge.status == 200 && badge.headers["content-type"] == ["image/svg+xml"])
            #expect(badge.text.hasPrefix("<svg xmlns=") && badge.text.hasSuffix("</svg>\n"))
            #expect(badge.text.contains("<title>\(text)</title>"), "\(badge.text)")
        }
    }

    @Test(arguments: [(0.99, "#1a7f37"), (0.98, "#9a6700"), (0.9, "#b42318"), (nil, "#57606a")])
    func `the colour of a badge shows the uptime`(uptime: Double?, colour: String) {
        #expect(Badge.uptime(uptime, .day).svg.text.contains(#"fill="\#(colour)""#))
    }

    // MARK: The TCP port

    @Test(arguments: ["evil.example", "evil.example:9317", "127.0.0.1", "127.0.0.1:9318", ""])
    func `a request for another host is refused`(host: String) async throws {
        let address = try #require(WebAddress("127.0.0.1:9317"))
        try await serving([], hosts: HostAllowList(address)) { router in
            var statuses: [UInt] = []
            for name in [host, "LocalHost:9317", "127.0.0.1:9317"] {
                statuses.append(try await get(router, "/", host: name).status)
            }
            #expect(statuses == [421, 200, 200])
        }
    }

    @Test(arguments: [
        "0.0.0.0:80", "192.0.2.1:80", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "::1:80", "localhost:80",
    ])
    func `only loopback addresses with a port are accepted for the page`(text: String) {
        #expect(WebAddress(text) == nil)
    }

    @Test func `nothing that the port serves names a request`() async throws {
        let host = WatchedHost(name: "db", check: .route(try NetworkHost(validating: "127.0.0.1")))
        let enqueue = { (queue: OfflineQueue) in
            var options = EnqueueOptions(id: "order-7")
            (options.lane, options.tag) = ("alarms", "nightly")
            let request = QueueRequest(method: "POST", url: "http://clinic.invalid/blood")
            _ = try await queue.enqueue(request, options: options)
        }
        let paths = [
            "/", "/metrics", "/v1/status", "/v1/hosts", "/v1/hosts/db", "/v1/hosts/db/history",
            "/badge/db/status.svg", "/healthz", "/readyz",
        ]
        try await serving([host], preparing: enqueue) { router in
            for path in paths {
                let text = try await get(router, path).text
                let found = ["order-7", "alarms", "nightly", "clinic", "blood"].filter { text.contains($0) }
                #expect(found == [], "\(path)")
            }
            #expect(try await get(router, "/").text.contains("<dt>pending</dt><dd>1</dd>"))
        }
    }

    @Test func `nothing that the port serves changes anything`() async throws {
        try await serving([]) { router in
            for path in ["/", "/v1/hosts", "/metrics", "/v1/status", "/healthz", "/readyz"] {
                let answer = try await get(router, path, method: .POST)
                #expect(answer.status == 405, "\(path)")
            }
        }
    }

    // MARK: Metrics

    @Test func `the metrics have the state of the hosts and of the queue`() async throws {
        let local = WatchedHost(name: "db", check: .route(try NetworkHost(validating: "127.0.0.1")))
        let hosts = [local, try Self.tcp("a-b.c:1", port: 1)]
        try await serving(hosts, untilUp: "db") { router in
            let metrics = try await get(router, "/metrics")
            #expect(metrics.headers["content-type"] == ["text/plain; version=0.0.4; charset=utf-8"])
            for line in [
                #"netwatch_build_info{version="1.2.3"} 1"#, #"netwatch_host_up{host="db"} 1"#,
                #"netwatch_host_outage{cause="remote",host="db"} 0"#, "netwatch_queue_paused 0",
                #"netwatch_queue_requests{state="pending"} 0"#,
                #"netwatch_queue_attempts_total{result="delivered"} 0"#,
                "netwatch_queue_delivery_delay_seconds_count 0", "netwatch_netlink_malformed_total 0",
            ] {
                #expect(metrics.text.contains(line + "\n"), "\(line)")
            }
        }
    }

    @Test func `the documentation has a row for every metric, and for no other`() async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let host = try Self.tcp("db", port: server.port)
        let waiting = QueueRequest(method: "GET", url: server.url)
        let documented = try DocumentationPage("docs/operations.md").metrics
        let enqueue = { (queue: OfflineQueue) in
            _ = try await queue.enqueue(waiting)
            // Like a complete scan, a verification sets the time of the last one.
            _ = try await queue.verify()
        }
        try await serving([host], untilUp: "db", preparing: enqueue) { router in
            let metrics = try await get(router, "/metrics").text
            let names = metrics.matches(of: /TYPE ([a-z_]+)/).map { String($0.1) }
            #expect(names.count > 20)
            #expect(Set(names) == documented)
        }
    }

    @Test func `the durations of a host's probes are a histogram of its successful probes`() async throws {
        let server = try ScriptedServer()
        defer { server.stop() }
        let host = try Self.tcp("db", port: server.port)
        try await serving([host], untilUp: "db") { router in
            let lines = try await get(router, "/metrics").text.split(separator: "\n")
            func value(_ series: String) -> Substring? {
                lines.first { $0.hasPrefix(series + " ") }?.split(separator: " ").last
            }
            let successes = value(#"netwatch_host_probes_total{host="db",result="success"}"#)
            let duration = "netwatch_host_probe_duration_seconds"
            #expect(successes != nil && value(#"\#(duration)_count{host="db"}"#) == successes)
            #expect(value(#"\#(duration)_bucket{host="db",le="+Inf"}"#) == successes)
            #expect(lines.count { $0.hasPrefix(duration) } == 10)
        }
    }

    @Test func `promtool accepts the metrics`() async throws {
        let promtool = try await TestProgram.path("promtool")
        let local = WatchedHost(name: "db", check: .route(try NetworkHost(validating: "127.0.0.1")))
        let hosts = [local, try Self.tcp("a-b.c:1", port: 1)]
        try await serving(hosts, untilUp: "db") { router in
            let text = try await get(router, "/metrics").text
            let file = try directory.write(Array(text.utf8), to: "metrics")
            let check = try Subprocess("/bin/sh", ["-c", "\(promtool) check metrics < \(file)"])
            let outcome = try await check.outcome()
            #expect(outcome.ending == .exited(0), "\(outcome.output + outcome.errors)")
        }
    }
}
