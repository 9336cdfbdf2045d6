internal import Foundation
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchService

/// The routes for the readiness of the service and for its configuration. The conformance tests cover their successes.
@Suite(.timeLimit(.minutes(5))) struct ServiceRoutesTests {
    private static let reload = OpenAPIRequest(method: "POST", path: "/v1/reload")
    private static let readiness = OpenAPIRequest(method: "GET", path: "/readyz")

    @Test(arguments: [Readiness.Phase.starting, .stopping])
    func `a service that starts or stops is not ready`(phase: Readiness.Phase) async throws {
        let fixture = try await OpenAPIFixture()
        fixture.state.readiness.phase = phase
        for response in try await fixture.responses(to: [Self.readiness, Self.reload]) {
            #expect(response.status == 503)
            #expect(response.body.contains(#""code":"not_ready""#))
            #expect(response.body.contains("the service is \(phase.rawValue)"))
        }
        await fixture.stop()
    }

    @Test func `a service that is ready responds like one that is healthy, as the page says`() async throws {
        let fixture = try await OpenAPIFixture()
        let health = OpenAPIRequest(method: "GET", path: "/healthz")
        let responses = try await fixture.responses(to: [Self.readiness, health])
        #expect(responses.map(\.status) == [200, 200] && responses.map(\.body) == ["ok\n", "ok\n"])
        await fixture.stop()
    }

    @Test func `a reload returns the number of hosts and the keys that need a restart`() async throws {
        let fixture = try await OpenAPIFixture()
        await fixture.state.reloads.use {
            .applied(hosts: 3, restartKeys: ["web.listen"], replacedKeys: ["queue.ttl"])
        }
        let response = try await fixture.responses(to: [Self.reload])[0]
        #expect(response.status == 200)
        #expect(
            response.body == #"{"hosts":3,"replaced_keys":["queue.ttl"],"restart_keys":["web.listen"],"v":1}"#
                + "\n"
        )
        await fixture.stop()
    }

    @Test func `the page says whether the last reload was refused, but not why`() async throws {
        let fixture = try await OpenAPIFixture()
        let page = OpenAPIRequest(method: "GET", path: "/")
        let before = try await fixture.responses(to: [page])[0].body
        #expect(before.contains("The configuration was not reloaded since."))
        let applied = try await fixture.responses(to: [Self.reload, page])[1].body
        #expect(applied.contains("The configuration was reloaded at "))
        await fixture.state.reloads.use { .refused(["a.toml:1:1: secret"]) }
        let refused = try await fixture.responses(to: [Self.reload, page])[1].body
        #expect(refused.contains("The configuration has faults and was not reloaded at "))
        #expect(!refused.contains("secret"))
        await fixture.stop()
    }

    @Test
    func `the use of the last good configuration is reported everywhere, its reason only with full access`()
        async throws
    {
        var base = ServiceConfiguration(stateDirectory: "", socket: "")
        base.values.texts = ["queue.inflight": "3"]
        var new = base
        new.values.texts = ["queue.inflight": "4", "web.listen": "\"127.0.0.1:9\""]
        let kept = Date(timeIntervalSince1970: 0)
        let fallback = ConfigurationFallback(
            faults: ["a.toml:1:1: x"],
            kept: kept,
            ignoredKeys: ["queue.ttl"]
        )
        let start = StartConfiguration(configuration: base, fallback: fallback)
        let inUse = ConfigurationInUse(start, path: "/a.toml") { [new] () throws(InvalidConfiguration) in new
        }
        inUse.keepingFailure = "rename: Read-only file system"
        let fixture = try await OpenAPIFixture(configuration: inUse)
        let requests = ["/v1/status", "/", "/metrics", "/v1/configuration"].map {
            OpenAPIRequest(method: "GET", path: $0)
        }
        let responses = try await fixture.responses(to: requests).map(\.body)
        #expect(responses[0].contains(#""last_good":"1970-01-01T00:00:00.000Z""#))
        #expect(responses[1].contains("uses its last good configuration, of \(TextFormat.time(kept))"))
        #expect(responses[2].contains("netwatch_configuration_last_load_successful 0\n"))
        #expect(responses.prefix(3).allSatisfy { !$0.contains("a.toml") })
        let message = try ControlMessage.decoder.decode(
            ControlMessage.Configuration.self,
            from: Data(responses[3].utf8)
        )
        let expected = ControlMessage.Configuration(
            path: "/a.toml",
            faults: [],
            reloadKeys: ["queue.inflight"],
            restartKeys: ["web.listen"],
            lastGood: .init(kept: kept, faults: ["a.toml:1:1: x"], ignoredKeys: ["queue.ttl"]),
            keepingFailure: "rename: Read-only file system"
        )
        #expect(message == expected)
        #expect(await fixture.state.statusLine().text.hasSuffix("; last good configuration"))
        _ = inUse.apply(new.values)
        let later = try await fixture.responses(to: requests).map(\.body)
        #expect(later.allSatisfy { !$0.contains("last_good") && !$0.contains("last good configuration, of") })
        #expect(later[2].contains("netwatch_configuration_last_load_successful 1\n"))
        await fixture.stop()
    }

    @Test func `damage that scans have found is reported everywhere, its texts only with full access`()
        async throws
    {
        let finding = #"{"kind":"body_changed","message":"secret","subject":"order-7"}"#
        let scan = #"{"count":2,"listed":[\#(finding)]}"#
        let record = #"{"completed":0,"current":{"count":0,"listed":[]},"last":\#(scan)}"#
        let fixture = try await OpenAPIFixture(scan: record)
        let requests = ["/v1/status", "/", "/metrics", "/v1/queue/check"].map {
            OpenAPIRequest(method: "GET", path: $0)
        }
        let responses = try await fixture.responses(to: requests).map(\.body)
        let times = #""scan":{"completed":"2001-01-01T00:00:00.000Z","finding_count":2"#
        #expect(responses[0].contains("\(times)}"))
        #expect(responses[1].contains("The queue is damaged: a scan has found 2 problems."))
        #expect(
            responses[2].contains("netwatch_store_scan_findings 2\n")
                && responses[2].contains("netwatch_store_scan_completed_timestamp_seconds 978307200\n")
        )
        #expect(responses.prefix(3).allSatisfy { !$0.contains("secret") })
        #expect(responses[3].contains(#"\#(times),"findings":[\#(finding)]}"#), "\(responses[3])")
        #expect(await fixture.state.statusLine().text.hasSuffix("; damaged store"))
        await fixture.stop()
    }

    @Test func `a refused reload is in the metrics until the next one is applied`() async throws {
        let fixture = try await OpenAPIFixture()
        let requests = [Self.reload, OpenAPIRequest(method: "GET", path: "/metrics")]
        for (outcome, value) in [
            (ConfigurationReloads.Outcome.refused(["x"]), 0), (.applied(hosts: 0, restartKeys: []), 1),
        ] {
            await fixture.state.reloads.use { outcome }
            let metrics = try await fixture.responses(to: requests)[1].body
            #expect(metrics.contains("netwatch_configuration_last_load_successful \(value)\n"))
        }
        await fixture.stop()
    }

    @Test func `a refused reload returns all faults`() async throws {
        let fixture = try await OpenAPIFixture()
        await fixture.state.reloads.use { .refused(["a.toml:1:1: x", "a.toml:2:1: y"]) }
        let response = try await fixture.responses(to: [Self.reload])[0]
        #expect(response.status == 422)
        #expect(response.body.contains(#""code":"configuration_refused""#))
        #expect(response.body.contains(#"a.toml:1:1: x\na.toml:2:1: y"#))
        await fixture.stop()
    }
}
