internal import ClientCore
internal import Foundation
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// Captive portal probes of servers on loopback.
@Suite(.timeLimit(.minutes(5))) struct CaptivePortalProbeTests {
    private let engine: TransferEngine
    private let path: NetworkPath

    init() throws {
        engine = try .withLoopbackNames()
        path = try loopbackPath()
    }

    private func empty(_ url: String, timeout: Duration = .seconds(30)) async throws -> ProbeResult {
        try await CaptivePortalProbe.generate204(url, timeout: timeout, engine: engine)
            .run(to: nil, over: path)
    }

    private func api(_ url: String, timeout: Duration = .seconds(30)) async throws -> ProbeResult {
        try await CaptivePortalProbe.api(url, timeout: timeout, schemes: ["http"], engine: engine)
            .run(to: nil, over: path)
    }

    private func captive(_ url: String?) -> PathValidation {
        .captive(CaptivePortal(userPortalURL: url))
    }

    // MARK: A page with a known empty body

    @Test func `204, or 200 without a body, is valid`() async throws {
        for status in [204, 200] {
            let server = try ScriptedServer { _ in .respond(status: status) }
            let result = try await empty("\(server.url)/generate_204")
            #expect(result.validation == .valid)
            #expect(result.latency != nil)
            #expect(server.requests.map(\.target) == ["/generate_204"])
        }
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func `a redirect indicates a portal and is not followed`(status: Int) async throws {
        let server = try ScriptedServer { _ in
            .respond(status: status, headers: [.init("Location", "https://portal.example/in?x=1")])
        }
        let result = try await empty(server.url)
        #expect(result.validation == captive("https://portal.example/in?x=1"))
        #expect(result.portal?.userPortalURL == "https://portal.example/in?x=1")
        #expect(server.requests.count == 1)
    }

    @Test func `a relative redirect is resolved against the probe's URL`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 302, headers: [.init("Location", "/login")]) }
        #expect(try await empty("\(server.url)/a/b").validation == captive("\(server.url)/login"))
    }

    @Test(arguments: ["javascript:alert(1)", "file:///etc/passwd", "ftp://portal.example/", "http://"])
    func `a redirect to a scheme other than http and https is a portal without a page`(location: String)
        async throws
    {
        let server = try ScriptedServer { _ in
            .respond(status: 302, headers: [.init("Location", location)])
        }
        #expect(try await empty(server.url).validation == captive(nil))
    }

    @Test func `a body where none is expected indicates a portal, whatever its length`() async throws {
        for page in [ScriptedServer.Action.respond("<html>Log in"), .endlessBody] {
            let server = try ScriptedServer { _ in page }
            #expect(try await empty(server.url).validation == captive(nil))
        }
    }

    @Test func `511 indicates a portal`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 511, body: Array("<html>".utf8)) }
        #expect(try await empty(server.url).validation == captive(nil))
    }

    @Test(arguments: [400, 404, 500, 503])
    func `an error status does not indicate a portal`(status: Int) async throws {
        let server = try ScriptedServer { _ in .respond(status: status, body: Array("<html>".utf8)) }
        #expect(try await empty(server.url).validation == .failed("unexpected status \(status)"))
    }

    @Test func `an incomplete 200 response is a failure`() async throws {
        let server = try ScriptedServer { _ in
            .send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", then: .stall(then: .close))
        }
        let result = try await empty(server.url, timeout: .seconds(10))
        #expect(result.validation == .failed("no complete response within 10.0 seconds"))
    }

    // MARK: RFC 8908

    private func serving(_ json: String, type: String = "application/captive+json") throws
        -> ScriptedServer
    {
        try ScriptedServer { _ in
            .respond(status: 200, headers: [.init("Content-Type", type)], body: Array(json.utf8))
        }
    }

    @Test func `the API is requested with its media type, and its response is used`() async throws {
        let server = try serving(
            #"{"captive":true,"user-portal-url":"https://portal.example/","can-extend-session":false}"#
        )
        let result = try await api("\(server.url)/api?session=1")
        var portal = CaptivePortal(userPortalURL: "https://portal.example/")
        portal.canExtendSession = false
        #expect(result.validation == .captive(portal))
        #expect(server.requests.first?.values(of: "Accept") == ["application/captive+json"])
        #expect(server.requests.first?.target == "/api?session=1")
    }

    @Test func `an open portal reports its session's limits`() async throws {
        let server = try serving(#"{"captive":false,"seconds-remaining":326}"#)
        let result = try await api(server.url)
        #expect(result.validation == .valid)
        #expect(result.portal?.secondsRemaining == 326)
    }

    @Test func `any other response fails with a message`() async throws {
        let html = try serving("<html>", type: "text/html")
        #expect(
            try await api(html.url).validation
                == .failed("the content type is `text/html`; application/captive+json is required")
        )
        let malformed = try serving(#"{"captive": "no"}"#)
        #expect(
            try await api(malformed.url).validation
                == .failed("the response is not a JSON object with a Boolean `captive`")
        )
        let moved = try ScriptedServer { _ in .respond(status: 302, headers: [.init("Location", "/x")]) }
        #expect(try await api(moved.url).validation == .failed("unexpected status 302, location `/x`"))
        #expect(moved.requests.count == 1)
        let large = try ScriptedServer { _ in .endlessBody }
        #expect(
            try await api(large.url, timeout: .seconds(60)).validation
                == .failed("the response body is longer than 65536 bytes")
        )
    }

    @Test(arguments: EndlessAnswer.all)
    func `an endless response is aborted`(answer: EndlessAnswer) async throws {
        for ask in [empty, api] {
            let server = try ScriptedServer(answer.script)
            #expect(try await ask(server.url, answer.timeout).validation == .failed(answer.words))
            await server.openConnections(atMost: 0)
        }
    }

    // MARK: Creating a probe

    @Test func `the API requires https and the generate_204 page http`() throws {
        #expect(try CaptivePortalProbe.api("https://portal.example/api").name == "captive-portal api")
        #expect(try CaptivePortalProbe.generate204("http://check.example/").name == "captive-portal 204")
        let plain = #expect(throws: InvalidProbe.self) { try CaptivePortalProbe.api("http://portal.example") }
        #expect(
            plain?.description
                == "`http://portal.example` cannot be probed; https://HOST/… is accepted"
        )
        #expect(throws: InvalidProbe.self) { try CaptivePortalProbe.generate204("https://check.example") }
    }
}
