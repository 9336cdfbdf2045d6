internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

/// The encoding of metrics for collectors of OpenTelemetry, as ``OTLPDecoder`` reads it.
@Suite(.timeLimit(.minutes(5))) struct OTLPMetricsTests {
    private let encoder = OTLPMetrics(
        instance: "gateway-17",
        version: "1.2.3",
        start: 1_700_000_000_000,
        time: 1_700_000_060_000
    )

    @Test func `gauges, counters and histograms arrive as the published messages describe them`()
        async throws
    {
        var histogram = DurationHistogram(limits: [.milliseconds(500), .seconds(1)])
        for milliseconds in [200, 500, 700, 3000] { histogram.add(.milliseconds(milliseconds)) }
        var list = MetricList()
        list.add("up", .gauge, "Is it up?", [(["host": "a"], 1), (["host": "é", "cause": "x"], -0.5)])
        list.add("bytes_total", .counter, "The bytes.", 3_000_000_000)
        list.add("missing", .gauge, "Nothing.", nil)
        list.add("delay_seconds", "The delay.", [(["host": "a"], histogram)])
        let (start, time) = ("1700000000000000000", "1700000060000000000")
        #expect(
            try await OTLPDecoder.lines(of: encoder.requests(with: list.metrics)) == [
                "resource service.name=netwatch service.version=1.2.3 service.instance.id=gateway-17 "
                    + "host.name=gateway-17",
                "scope netwatch 1.2.3",
                "gauge up None {} Is it up?",
                "{host=a} - \(time) 1.0",
                "{cause=x host=é} - \(time) -0.5",
                "sum bytes_total None {'aggregation_temporality': 2, 'is_monotonic': 1} The bytes.",
                "{} \(start) \(time) 3000000000.0",
                "histogram delay_seconds None {'aggregation_temporality': 2} The delay.",
                "{host=a} \(start) \(time) 4 4.4 [2, 1, 1] [0.5, 1.0]",
            ]
        )
    }

    @Test func `the metrics of many hosts are several requests below 1 MiB, which have each sample once`()
        async throws
    {
        let names = (0..<20_000).map { "\($0)." + String(repeating: "x", count: 58) }
        var list = MetricList()
        list.add("first", .gauge, "The first.", 1)
        list.add("up", .gauge, "Whether it is up.", names.map { (["host": $0], 1) })
        list.add("last", .counter, "The last.", 1)
        let requests = encoder.requests(with: list.metrics)
        #expect(requests.count > 1 && requests.allSatisfy { $0.count <= 1 << 20 })
        let lines = try await OTLPDecoder.lines(of: requests)
        let hosts = lines.filter { $0.hasPrefix("{host=") }
        #expect(hosts.count == names.count && Set(hosts).count == names.count)
        // A resource, a scope, and the metric in each request; the first and the last one in one of them.
        #expect(lines.count == hosts.count + 3 * requests.count + 4)
    }

    @Test func `no metrics are no request, and a clock before 1970 counts as 1970`() async throws {
        #expect(encoder.requests(with: []).isEmpty)
        let early = OTLPMetrics(instance: "a", version: "1", start: -2000, time: -1000)
        var list = MetricList()
        list.add("bytes_total", .counter, "The bytes.", 300)
        #expect(try await OTLPDecoder.lines(of: early.requests(with: list.metrics)).last == "{} 0 0 300.0")
    }
}
