internal import Foundation
internal import Logging
internal import NetwatchEventLoop
internal import NetwatchService
internal import NetwatchTestSupport
internal import NetworkReachability
internal import OfflineQueue
internal import Testing

@Suite(.timeLimit(.minutes(5))) struct HostMonitorTests {
    /// A host that needs no server: the kernel has a route to it.
    private static func local(_ name: String, _ address: String) throws -> WatchedHost {
        WatchedHost(name: name, check: .route(try NetworkHost(validating: address)))
    }

    /// The messages of the monitor. It logs a change in the same turn in which its snapshots show it.
    private let messages = Recorder<String>()

    /// Waits until the monitor has logged `count` changes of a host to a state.
    private func wait(for state: String, of name: String, times count: Int = 1) async throws {
        try await messages.wait { $0.count { $0.hasPrefix("host `\(name)` is \(state)") } >= count }
    }

    @Test func `a changed host is watched with its new settings, and the others keep their state`()
        async throws
    {
        let monitor = HostMonitor(monitor: .shared, history: nil, logger: .recording(messages))
        let kept = try Self.local("kept", "127.0.0.1")
        let hosts = [kept, try Self.local("changed", "127.0.0.2")]
        let running = Task { await monitor.run(hosts) }
        try await wait(for: "up", of: "kept")
        try await wait(for: "up", of: "changed")
        let before = try #require(await monitor.snapshots.first)
        let changes = messages.values.count { $0.hasPrefix("host `changed` is up") }
        let moved = try Self.local("changed", "127.0.0.3")
        await monitor.update([moved, kept])
        let after = await monitor.snapshots
        #expect(after.map(\.host) == [moved, kept])
        #expect(after[1].since == before.since)
        try await wait(for: "up", of: "changed", times: changes + 1)
        #expect(await monitor.snapshots[0].state == .up)
        running.cancel()
        await running.value
    }

    @Test func `an update during the start is not overwritten by it`() async throws {
        let directory = try ScratchDirectory()
        let history = try await Self.history(in: directory, of: "old", [.noPath("no route")])
        // The start reports the recorded outage again, and waits until the webhook is stored.
        let (untilUpdated, updated) = AsyncStream<Void>.makeStream()
        let (stored, hooks) = await Self.hooks(history) { for await _ in untilUpdated {} }
        let monitor = HostMonitor(
            monitor: .shared,
            history: history,
            hooks: hooks,
            logger: .recording(messages)
        )
        let (old, new) = try (Self.local("old", "127.0.0.2"), Self.local("new", "127.0.0.3"))
        let running = Task { await monitor.run([old]) }
        try await stored.wait { !$0.isEmpty }
        await monitor.update([new])
        updated.finish()
        try await messages.wait { $0.contains { $0.contains("is up") } }
        #expect(await monitor.snapshots.map(\.host) == [new])
        running.cancel()
        await running.value
    }

    @Test func `a successful probe reports the origins that it has reached, and a route none`() async throws {
        let server = try SocketServer.echo()
        let reached = Recorder<[Origin]>()
        let monitor = HostMonitor(
            monitor: .shared,
            history: nil,
            onSuccess: { reached.record($0) },
            logger: .recording(messages)
        )
        let address = try NetworkHost(validating: "127.0.0.1")
        let probed = WatchedHost(name: "probed", check: .tcp(address, port: server.port))
        let running = Task { await monitor.run([try Self.local("route", "127.0.0.1"), probed]) }
        try await wait(for: "up", of: "route")
        try await wait(for: "up", of: "probed")
        running.cancel()
        _ = await running.result
        #expect(!reached.values.isEmpty && reached.values.allSatisfy { $0 == probed.origins })
    }

    @Test func `the origins of a host are those of its URL, or of its address and port`() throws {
        func origins(_ check: WatchedHost.Check) -> [String] {
            WatchedHost(name: "host", check: check).origins.map(\.description)
        }
        let url = "https://API.example.com/health"
        #expect(origins(.web(url: url, expectedStatus: 200...299)) == ["https://api.example.com:443"])
        let address = try NetworkHost(validating: "::1")
        #expect(origins(.tcp(address, port: 80)) == ["http://[::1]:80", "https://[::1]:80"])
        #expect(origins(.route(address)).isEmpty)
    }

    @Test func `the hosts of an early update stay listed while the history is read`() async throws {
        let directory = try ScratchDirectory()
        let history = try await Self.history(in: directory, of: "here", [.noPath("no route")])
        // The start reports the recorded outage again, and waits until the webhook is stored.
        let (untilListed, listed) = AsyncStream<Void>.makeStream()
        let (stored, hooks) = await Self.hooks(history) { for await _ in untilListed {} }
        let monitor = HostMonitor(
            monitor: .shared,
            history: history,
            hooks: hooks,
            logger: .recording(messages)
        )
        let here = try Self.local("here", "127.0.0.1")
        await monitor.update([here])
        let running = Task { await monitor.run([]) }
        try await stored.wait { !$0.isEmpty }
        #expect(await monitor.snapshots.map(\.host) == [here])
        listed.finish()
        // The tracker has continued the recorded outage.
        try await messages.wait { $0.contains { $0.hasPrefix("host `here` is up; it was down since ") } }
        running.cancel()
        await running.value
    }

    @Test(.enabled(if: NetworkNamespace.isAvailable))
    func `an update before the start does not end the outages of the history`() async throws {
        let directory = try ScratchDirectory()
        let history = try await Self.history(in: directory, of: "far", [.noPath("no route")])
        let namespace = try NetworkNamespace()
        var configuration = PathMonitor.Configuration()
        configuration.networkNamespace = namespace.path
        let (stored, hooks) = await Self.hooks(history)
        let monitor = HostMonitor(
            monitor: PathMonitor(configuration: configuration),
            history: history,
            hooks: hooks,
            logger: .recording(messages)
        )
        let far = WatchedHost(name: "far", check: .route(try NetworkHost(validating: "192.0.2.1")))
        await monitor.update([far])
        let running = Task { await monitor.run([]) }
        try await stored.wait { !$0.isEmpty }
        running.cancel()
        await running.value
        let outages = try await history.outages(of: "far", since: 0, now: .now, limit: 10)
        #expect(outages.count == 1 && outages.first?.end == nil, "\(outages)")
    }

    @Test func `the end of an outage is reported after a restart with an unknown state`() async throws {
        let directory = try ScratchDirectory()
        let history = try await Self.history(in: directory, of: "here", [.noPath("no route"), .path])
        let (stored, hooks) = await Self.hooks(history)
        let monitor = HostMonitor(
            monitor: .shared,
            history: history,
            hooks: hooks,
            logger: .recording(messages)
        )
        let here = try Self.local("here", "127.0.0.1")
        let running = Task { await monitor.run([here]) }
        try await stored.wait { $0.count == 2 }
        running.cancel()
        await running.value
        #expect(stored.values[0].contains(#""event":"down""#))
        #expect(stored.values[1].contains(#""event":"up""#))
        #expect(try await history.hookOutages() == [:])
    }

    /// Returns a history with the changes that reports cause for a host.
    private static func history(
        in directory: ScratchDirectory,
        of name: String,
        _ reports: [HostReport]
    ) async throws -> HostHistory {
        let history = try HostHistory(path: directory.file("history.sqlite"))
        var tracker = HostTracker(fall: 1, rise: 1, now: .now)
        var batch = HistoryBatch()
        for report in reports {
            let change = tracker.take(report, at: .now).change
            batch.add(try #require(change), of: name)
        }
        try await history.write(batch, now: .now)
        return history
    }

    /// Returns a reporter of local outages, and what records the bodies of its webhooks.
    ///
    /// - Parameter store: Called after each body is recorded. Default: does nothing.
    private static func hooks(
        _ history: HostHistory,
        store: @escaping @Sendable () async -> Void = {}
    ) async -> (stored: Recorder<String>, hooks: HookReporter) {
        let stored = Recorder<String>()
        let hooks = HookReporter(logger: .recording(Recorder()), history: history) { request, _ in
            guard case .data(let body) = request.body else { return }
            stored.record(String(decoding: body, as: UTF8.self))
            await store()
        }
        var hook = Hook(.webhook(Webhook(url: "https://alerts.example.com/")))
        hook.causes = [.local]
        hook.groupWait = .zero
        await hooks.use([hook])
        return (stored, hooks)
    }

    @Test func `a monitor that is stopped writes the rest of its history without a warning`() async throws {
        let directory = try ScratchDirectory()
        let history = try HostHistory(path: directory.file("history.sqlite"))
        // Each reading is a second later, so that there is time to write at the stop.
        let readings = Lock(0)
        let monitor = HostMonitor(monitor: .shared, history: history, logger: .recording(messages)) {
            let seconds = readings.withLock { seconds in
                seconds += 1
                return seconds
            }
            return HostTracker.Moment(wall: Int64(seconds) * 1000, running: .seconds(seconds))
        }
        let host = try Self.local("here", "127.0.0.1")
        let running = Task { await monitor.run([host]) }
        try await wait(for: "up", of: "here")
        running.cancel()
        await running.value
        #expect(messages.values.filter { $0.contains("history") }.isEmpty)
        let minutes = try await history.buckets(of: "here", .minute, since: 0)
        #expect(minutes.values.reduce(0) { $0 + $1.up } > 0)
    }

    @Test(.enabled(if: NetworkNamespace.isAvailable))
    func `a host without a route is a local outage, which ends with the route`() async throws {
        let namespace = try NetworkNamespace()
        var configuration = PathMonitor.Configuration()
        configuration.networkNamespace = namespace.path
        let host = WatchedHost(name: "far", check: .route(try NetworkHost(validating: "192.0.2.1")))
        let monitor = HostMonitor(
            monitor: PathMonitor(configuration: configuration),
            history: nil,
            logger: .recording(messages)
        )
        let running = Task { await monitor.run([host]) }
        try await wait(for: "down (local)", of: "far")
        #expect(await monitor.snapshots.map(\.state) == [.down(.local)])
        try namespace.ip("route add local 192.0.2.1 dev lo")
        try await wait(for: "up", of: "far")
        #expect(await monitor.snapshots.map(\.state) == [.up])
        running.cancel()
        await running.value
    }

    /// - Parameter milliseconds: Milliseconds since 1970.
    private static func text(_ milliseconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(milliseconds) / 1000).rfc3339
    }

    @Test(
        .enabled(if: NetworkNamespace.isAvailable),
        arguments: [14 * 86_400_000, -14 * 86_400_000] as [Int64]
    )
    func `everything that reports an outage in which the clock was set has its length`(
        step: Int64
    ) async throws {
        let namespace = try NetworkNamespace()
        var configuration = PathMonitor.Configuration()
        configuration.networkNamespace = namespace.path
        let directory = try ScratchDirectory()
        let history = try HostHistory(path: directory.file("history.sqlite"))
        let (stored, hooks) = await Self.hooks(history)
        let time = Lock(HostTracker.Moment.at(1_795_478_400_000))
        let monitor = HostMonitor(
            monitor: PathMonitor(configuration: configuration),
            history: history,
            hooks: hooks,
            logger: .recording(messages)
        ) {
            time.withLock { $0 }
        }
        let far = WatchedHost(name: "far", check: .route(try NetworkHost(validating: "192.0.2.1")))
        let running = Task { await monitor.run([far]) }
        try await stored.wait { !$0.isEmpty }
        let end = HostTracker.Moment.at(1_795_478_460_000, step: step)
        let start = end.wall - 60_000
        time.withLock { $0 = end }
        #expect(await monitor.snapshots.map(\.since) == [start])
        try namespace.ip("route add local 192.0.2.1 dev lo")
        try await stored.wait { $0.count == 2 }
        running.cancel()
        await running.value
        let (began, ended) = (Self.text(start), Self.text(end.wall))
        #expect(messages.values.contains("host `far` is up; it was down since \(began)"))
        #expect(stored.values[1].contains("\"down_since\":\"\(began)\""))
        #expect(stored.values[1].contains("\"up_since\":\"\(ended)\""))
        let outages = try await history.outages(of: "far", since: 0, now: .now, limit: 10)
        #expect(outages.map(\.start) == [start] && outages.map(\.end) == [end.wall])
        withExtendedLifetime(directory) {}
    }
}
