internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

/// The built service behind a captive portal, on a host with its own links.
@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .serialized,
    .timeLimit(.minutes(5))
)
struct PortalTests {
    @Test func `the service sends nothing over plain HTTP while its probe finds a portal`() async throws {
        let (cuts, portal) = (try NetworkCuts(), CaptivePortal())
        let server = try ScriptedServer(address: TwoCableTestbed.host, in: cuts.far) { portal.answer($0) }
        let url = "http://\(TwoCableTestbed.host):\(server.port)"
        let service = try await RunningService(
            in: try ScratchDirectory(),
            namespace: cuts.near,
            options: ["--portal-probe", "\(url)/generate_204"]
        )
        let sent = try await service.run("send", "\(url)/order", "-d", "x", "--id", "order-1")
        let reason = "a captive portal intercepts plain HTTP: \(CaptivePortal.page)"
        #expect(sent.errors.joined() == "queued: \(reason)")
        let waiting = try await service.request("order-1")
        #expect(waiting["waits_for"] as? String == "portal", "\(waiting)")
        #expect(waiting["attempts"] as? Int == 0 && waiting["deferrals"] as? Int == 0, "\(waiting)")
        let shown = try await service.run("queue", "show", "order-1").output.joined(separator: "\n")
        #expect(
            shown.contains(CaptivePortal.page)
                && shown.contains("until the URL of `service.portal-probe` responds with 204"),
            "\(shown)"
        )
        portal.logIn()
        try cuts.cut(.route)
        try cuts.restore(.route)
        let details = try await Command.json(service.curl("/v1/requests/order-1?wait=60"))
        let end = try #require(details["request"] as? [String: Any])
        #expect(end["state"] as? String == "delivered" && end["attempts"] as? Int == 1, "\(end)")
        #expect(server.requests.map(\.target).filter { $0 == "/order" }.count == 1)
        try await service.stop()
    }

    @Test func `without a probe, a rule keeps a portal's page from being a delivery`() async throws {
        let cuts = try NetworkCuts()
        let visits = Lock(0)
        let server = try ScriptedServer(address: TwoCableTestbed.host, in: cuts.far) { _ in
            let visit = visits.withLock { visits in
                visits += 1
                return visits
            }
            return .respond(visit == 1 ? "<html>Log in" : #"{"stored":true}"#)
        }
        let service = try await RunningService(in: try ScratchDirectory(), namespace: cuts.near)
        let url = "http://\(TwoCableTestbed.host):\(server.port)/"
        let sent = try await service.run("send", url, "-d", "x", "--id", "a", "--expect", "json=/stored=true")
        let reason = "`json=/stored=true`; the response is probably from a captive portal"
        #expect(sent.errors.joined().contains(reason), "\(sent)")
        _ = try await service.run("queue", "flush")
        let details = try await Command.json(service.curl("/v1/requests/a?wait=60"))
        let end = try #require(details["request"] as? [String: Any])
        #expect(end["state"] as? String == "delivered" && end["deferrals"] as? Int == 1, "\(end)")
        try await service.stop()
    }
}
