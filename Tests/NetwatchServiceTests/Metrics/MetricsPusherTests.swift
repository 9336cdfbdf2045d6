internal import Foundation
internal import Logging
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

/// The pushes of metrics in a queue that sends nothing, and the effects of their outcomes.
@Suite(.timeLimit(.minutes(5))) struct MetricsPusherTests {
    private let directory = try! ScratchDirectory()
    private let directoryOfExport = try! ScratchDirectory()
    private let waits = ManualWaits()
    private let messages = Recorder<String>()
    private let meter = PushMeter()
    private let inputs = Inputs()

    /// What the pusher reads.
    private final class Inputs: Sendable {
        let now = Lock(HostTracker.Moment.at(1_000_000))
        let metrics = Lock<[Metric]>([])

        /// Uses one metric from now on.
        func use(_ name: String, _ kind: Metric.Kind, _ samples: [(labels: Metric.Labels, value: Double)]) {
            var list = MetricList()
            list.add(name, kind, "The help.", samples)
            let new = list.metrics
            metrics.withLock { $0 = new }
        }
    }

    init() {
        inputs.use("uses_total", .counter, [([:], 1)])
    }

    private func pusher(_ queue: OfflineQueue) -> MetricsPusher {
        MetricsPusher(
            queue: queue,
            version: "1.2.3",
            meter: meter,
            logger: .recording(messages),
            clock: { [inputs] in inputs.now.withLock { $0 } },
            sleep: { [waits] in try await waits.sleep($0) },
            collect: { [inputs] in inputs.metrics.withLock { $0 } }
        )
    }

    private static func push(_ url: String?) -> MetricsPush {
        var push = MetricsPush()
        (push.url, push.interval, push.credential) = (url, .seconds(10), "collector")
        (push.instance, push.timeToLive) = ("gateway-17", .seconds(120))
        return push
    }

    /// Returns the pushes in the queue. Call it while the pusher waits.
    private func stored(_ queue: OfflineQueue) async throws -> [QueuedRequest] {
        try await queue.list().requests
    }

    @Test func `a push replaces the one that waits, and a reload with another URL drops it`() async throws {
        let queue = try await directory.openQueue()
        let pusher = pusher(queue)
        let (first, second) = ("http://127.0.0.1:1/v1/metrics", "http://127.0.0.1:2/v1/metrics")
        await pusher.use(Self.push(first))
        try await waits.end(1)
        try await waits.started.wait { $0.count == 2 }
        let old = try await stored(queue)
        #expect(old.map(\.url) == [first] && old[0].lane == "netwatch-metrics" && old[0].method == "POST")
        let details = try #require(try await queue.request(old[0].id))
        #expect(details.options.credential == "collector" && details.options.replaceKey == "request-0")
        #expect(details.headers == [.init(name: "Content-Type", value: "application/x-protobuf")])
        #expect(details.timeouts.response == .seconds(10) && details.timeouts.total == .seconds(10))
        #expect(
            details.options.statusRules.fate(of: 503) == .retry
                && details.options.statusRules.fate(of: 401) == .dead
        )
        try await waits.end(2)
        try await waits.started.wait { $0.count == 3 }
        let new = try await stored(queue)
        #expect(new.map(\.url) == [first] && new[0].id != old[0].id)
        #expect(try await queue.counts[.superseded] == 0)
        await pusher.use(Self.push(second))
        #expect(try await stored(queue).isEmpty)
        try await waits.end(4)
        try await waits.started.wait { $0.count == 5 }
        #expect(try await stored(queue).map(\.url) == [second])
        await pusher.use(Self.push(nil))
        #expect(try await stored(queue).isEmpty)
        let durations = waits.started.values.map(\.duration)
        #expect(
            durations[0] <= .seconds(10)
                && [durations[1], durations[2], durations[4]] == Array(repeating: .seconds(10), count: 3)
        )
        await queue.stop()
    }

    /// Opens a queue with imported requests of a user that have the label of the pushes.
    private func queue(withImported count: Int) async throws -> OfflineQueue {
        let export = directory.file("export")
        let exporting = try await directoryOfExport.openQueue()
        let request = QueueRequest(method: "POST", url: "http://127.0.0.1:3/")
        let options = EnqueueOptions(lane: MetricsPush.lane)
        _ = try await exporting.enqueue(Array(repeating: (request, options), count: count))
        var data = Data()
        _ = try await exporting.export { data += $0 }
        await exporting.stop()
        try data.write(to: URL(filePath: export))
        let queue = try await directory.openQueue()
        _ = try await queue.importRequests(from: export, as: .user(1001))
        return queue
    }

    @Test func `a reload with another URL keeps an imported request with the label of the pushes`()
        async throws
    {
        let queue = try await queue(withImported: 1)
        let pusher = pusher(queue)
        await pusher.use(Self.push("http://127.0.0.1:1/"))
        await pusher.use(Self.push("http://127.0.0.1:2/"))
        #expect(try await stored(queue).map(\.state) == [.pending])
        await pusher.stop()
        await queue.stop()
    }

    @Test func `a reload with another URL drops a push that is stored after many imported requests`()
        async throws
    {
        let queue = try await queue(withImported: 1001)
        let pusher = pusher(queue)
        await pusher.use(Self.push("http://127.0.0.1:1/"))
        try await waits.end(1)
        try await waits.started.wait { $0.count == 2 }
        #expect(try await queue.counts[.pending] == 1002)
        await pusher.use(Self.push(nil))
        #expect(try await queue.counts[.pending] == 1001)
        await pusher.stop()
        await queue.stop()
    }

    @Test func `the metrics of many hosts are several requests, and the next push replaces each of them`()
        async throws
    {
        let queue = try await directory.openQueue()
        let pusher = pusher(queue)
        let names = (0..<20_000).map { "\($0)." + String(repeating: "x", count: 58) }
        inputs.use("up", .gauge, names.map { (["host": $0], 1) })
        await pusher.use(Self.push("http://127.0.0.1:1/"))
        for number in 1...2 {
            try await waits.end(number)
            try await waits.started.wait { $0.count == number + 1 }
            #expect(try await stored(queue).count == 2)
        }
        await pusher.stop()
        await queue.stop()
    }

    @Test func `a push that the queue refuses is counted, and logged once`() async throws {
        let queue = try await directory.openQueue()
        await queue.stop()
        let pusher = pusher(queue)
        await pusher.use(Self.push("http://127.0.0.1:1/"))
        for number in 1...3 {
            try await waits.end(number)
            try await waits.started.wait { $0.count == number + 1 }
        }
        #expect(meter.values.failures == 3)
        #expect(messages.values.count { $0.hasPrefix("the metrics were not queued: ") } == 1)
        await pusher.stop()
    }

    // MARK: Outcomes

    private func event(
        _ kind: QueueEvent.Kind,
        _ new: QueuedRequest.State,
        lane: String = MetricsPush.lane,
        _ reason: String? = nil
    ) -> QueueEvent {
        var event = QueueEvent(kind, at: Date(timeIntervalSince1970: 0))
        (event.host, event.lane, event.reason) = ("a.example", lane, reason)
        (event.oldState, event.newState) = (.inflight, new)
        return event
    }

    @Test func `refusals are counted, and a change between refusal and acceptance is logged once`()
        async throws
    {
        let queue = try await directory.openQueue()
        let pusher = pusher(queue)
        await pusher.use(Self.push("http://a.example/"))
        await pusher.record(event(.postponed, .pending, "HTTP 503"))
        await pusher.record(event(.superseded, .superseded, "HTTP 503"))
        await pusher.record(event(.dead, .dead, lane: "orders", "HTTP 400"))
        var dead = event(.dead, .dead, "HTTP 400: bad\nrequest")
        await pusher.record(dead)
        await pusher.record(dead)
        await pusher.record(event(.held, .held, "certificate has expired"))
        dead.oldState = .pending
        await pusher.record(dead)
        var imported = event(.dead, .dead, "HTTP 400")
        imported.submitter = 1001
        await pusher.record(imported)
        #expect(meter.values.failures == 5 && meter.values.lastSuccess == nil)
        inputs.now.withLock { $0 = .at(1_060_000) }
        #expect(meter.values.silence(at: .at(1_060_000)) == .seconds(60))
        await pusher.record(event(.delivered, .delivered))
        await pusher.record(event(.delivered, .delivered))
        #expect(
            meter.values.lastSuccess == .at(1_060_000)
                && meter.values.silence(at: .at(1_070_000)) == .seconds(10)
        )
        await pusher.record(event(.dead, .dead, "HTTP 401"))
        let end = "; further refusals are not logged until a push is accepted"
        #expect(
            messages.values == [
                #"`a.example` does not accept the metrics: HTTP 400: bad\nrequest\#(end)"#,
                "`a.example` accepts the metrics again",
                "`a.example` does not accept the metrics: HTTP 401\(end)",
            ]
        )
        await pusher.stop()
        await queue.stop()
    }

    @Test func `if the wall clock is set, the start of the counters follows it`() async throws {
        let queue = try await directory.openQueue()
        let pusher = pusher(queue)
        for (step, start, time) in [(0, 1000, 1060), (3_600_000, 4600, 4660), (-1_050_000, 0, 10)] {
            inputs.now.withLock { $0 = .at(1_060_000, step: Int64(step)) }
            let lines = try await OTLPDecoder.lines(of: try await pusher.requests(from: Self.push(nil)))
            #expect(lines[0].hasSuffix("service.instance.id=gateway-17 host.name=gateway-17"))
            // With a clock before 1970, the start is 1970.
            let shown = start == 0 ? "0" : "\(start)000000000"
            #expect(lines.last == "{} \(shown) \(time)000000000 1.0", "\(step)")
        }
        await queue.stop()
    }
}
