internal import NetwatchTestSupport
internal import NetwatchTransport
internal import NetworkReachability
internal import Testing

@testable internal import NetwatchService
@testable internal import OfflineQueue

/// Serialized, because some of the tests block a thread of the cooperative pool.
@Suite(.serialized, .timeLimit(.minutes(5))) struct HeartbeatTests {
    @Test func `a part that does not respond stops the reports`() async throws {
        let calls = Recorder<String>()
        let (responses, response) = AsyncStream.makeStream(of: Void.self)
        let heartbeat = Heartbeat(
            interval: .zero,
            parts: [{ calls.record("prompt") }, { _ = await responses.first { _ in true } }],
            report: { calls.record("report") }
        )
        let running = Task { await heartbeat.run() }
        response.yield()
        try await calls.wait { $0.count(where: { $0 == "prompt" }) == 2 }
        #expect(calls.values == ["prompt", "report", "prompt"])
        running.cancel()
        await running.value
    }

    /// The parts of the service.
    enum Part: CaseIterable, Sendable {
        case store, queue, pathMonitor, hostMonitor, transfers
    }

    @Test(arguments: Part.allCases)
    func `a blocked part of the service stops the reports until it responds`(part: Part) async throws {
        let directory = try ScratchDirectory()
        let queue = try await directory.openQueue()
        let monitor = PathMonitor()
        let hosts = HostMonitor(monitor: monitor, history: nil, logger: .recording(Recorder()))
        let view = HostsView(monitor: hosts, history: nil)
        let state = ServiceState(
            queue: queue,
            monitor: monitor,
            hosts: view,
            version: "1.2.3",
            configuration: ConfigurationInUse()
        )
        // The sessions of all tests share a thread, so this test blocks the thread of a separate engine.
        let engine = try TransferEngine()
        let blockade = Recorder<String>(), reports = Recorder<String>(), otherReports = Recorder<String>()
        let block: @Sendable () -> Void = {
            blockade.record("blocked")
            blockade.waitForClosing()
        }
        let store = try #require(queue.store as? SQLiteQueueStore)
        let blocking = Task {
            switch part {
            case .store: try await store.read { _ in block() }
            case .queue: await queue.occupy(block)
            case .pathMonitor: monitor.lookUp(nil) { _ in block() }
            case .hostMonitor: await hosts.occupy(block)
            case .transfers: await engine.occupy(block)
            }
        }
        try await blockade.wait { $0.count == 1 }
        let heartbeat = Heartbeat(
            interval: .milliseconds(1),
            parts: state.progressChecks(transfers: { await engine.awaitTurn() }),
            report: { reports.record("report") }
        )
        let unblocked = Heartbeat(
            interval: .milliseconds(1),
            parts: [],
            report: { otherReports.record("report") }
        )
        let running = Task { await heartbeat.run() }
        let reporting = Task { await unblocked.run() }
        // Without the check of the blocked part, a report would follow within these 50 intervals.
        try await otherReports.wait { $0.count >= 50 }
        reporting.cancel()
        #expect(reports.values.isEmpty)
        blockade.close()
        try await reports.wait { !$0.isEmpty }
        running.cancel()
        await running.value
        try await blocking.value
        await queue.stop()
    }
}

extension OfflineQueue {
    /// Occupies the actor until the function returns.
    fileprivate func occupy(_ body: @Sendable () -> Void) { body() }
}

extension TransferEngine {
    /// Occupies the actor until the function returns.
    fileprivate func occupy(_ body: @Sendable () -> Void) { body() }
}

extension HostMonitor {
    /// Occupies the actor until the function returns.
    fileprivate func occupy(_ body: @Sendable () -> Void) { body() }
}
