internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// The push of metrics by the built service.
@Suite(.timeLimit(.minutes(5))) struct PushServiceTests {
    private let directory = try! ScratchDirectory()

    @Test func `a collector gets the metrics, and a push that it refuses leaves no record`() async throws {
        let server = try ScriptedServer { $0.number == 1 ? .respond(status: 400) : .respond("") }
        defer { server.stop() }
        let text = """
            [metrics]
            push-url = "\(server.url)/v1/metrics"
            push-interval = "10s"
            push-instance = "gateway-17"
            """
        let file = try directory.write(Array(text.utf8), to: "netwatch.toml")
        let service = try await RunningService(in: directory, options: ["--config", file])
        try await service.hasLogged("`127.0.0.1` does not accept the metrics: HTTP 400")
        try await service.hasLogged("`127.0.0.1` accepts the metrics again")
        let requests = Array(server.requests.prefix(2))
        #expect(requests.allSatisfy { $0.method == "POST" && $0.target == "/v1/metrics" })
        #expect(
            requests.flatMap { $0.values(of: "Content-Type") }
                == Array(repeating: "application/x-protobuf", count: 2)
        )
        let lines = try await OTLPDecoder.lines(of: requests.map(\.body))
        #expect(
            lines.filter { $0.hasSuffix("service.instance.id=gateway-17 host.name=gateway-17") }.count == 2
        )
        #expect(
            lines.filter { $0 == "gauge netwatch_queue_paused None {} Whether the queue is paused." }.count
                == 2
        )
        #expect(try await service.counts().values.allSatisfy { $0 == 0 })
        let status = try await Command.json(service.curl("/v1/status"))
        let push = try #require(status["push"] as? [String: Any])
        #expect(push["failures"] as? Int == 1 && push["last_success"] is String)
        #expect(push["interval_seconds"] as? Double == 10)
        let metrics = try await service.curl("/metrics")
        #expect(metrics.contains("netwatch_push_failures_total 1\n"))
        #expect(metrics.contains(#"netwatch_queue_attempts_total{result="dead"} 0"#))
        try await service.stop()
    }
}
