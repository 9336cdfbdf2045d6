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
