internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// HTTP probes of servers on loopback.
@Suite(.timeLimit(.minutes(5))) struct HTTPProbeTests {
    private let engine: TransferEngine
    private let path: NetworkPath

    init() throws {
        engine = try .withLoopbackNames()
        path = try loopbackPath()
    }

    private func probe(
        _ url: String,
        method: HTTPProbe.Method = .get,
        expectedStatus: ClosedRange<Int> = 200...299,
        expectedBody: HTTPProbe.ExpectedBody? = nil,
        timeout: Duration = .seconds(30),
        maximumBodySize: Int = 64 * 1024,
        bypassesCaches: Bool = false
    ) async throws -> ProbeResult {
        try await HTTPProbe(
            url: url,
            method: method,
            expectedStatus: expectedStatus,
            expectedBody: expectedBody,
            timeout: timeout,
            maximumBodySize: maximumBodySize,
            bypassesCaches: bypassesCaches,
            engine: engine
        ).run(to: nil, over: path)
    }

    // MARK: Valid and invalid responses

    @Test func `an expected response is valid`() async throws {
        let server = try ScriptedServer { _ in .respond("hello") }
        let result = try await probe(server.url)
        #expect(result.validation == .valid)
        #expect(try #require(result.latency) > .zero)
        #expect(result.portal == nil)
    }

    @Test(
        arguments: [("http://a/", 80), ("https://a/", 443), ("HTTPS://a:8443/", 8443)] as [(String, UInt16)]
    )
    func `the path is watched for the port of the URL if the URL contains the watched host`(
        url: String,
        port: UInt16
    ) throws {
        let probe = try HTTPProbe(url: url)
        #expect(probe.destinationPort(for: NetworkHost("a")) == port)
        #expect(probe.destinationPort(for: NetworkHost("b")) == nil)
        #expect(probe.destinationPort(for: nil) == nil)
    }

    @Test func `the phases are the steps that occurred, and are not longer than the probe`() async throws {
        let server = try ScriptedServer { _ in .respond("hello") }
        let result = try await probe(server.url)
        let phases = try #require(result.phases)
        #expect(phases.tls == nil)
        let steps = [phases.lookup, phases.connect, phases.firstByte].compactMap(\.self)
        #expect(phases.connect != nil && phases.firstByte != nil)
        #expect(steps.allSatisfy { $0 >= .zero })
        let latency = try #require(result.latency)
        #expect(steps.reduce(.zero, +) <= latency + .milliseconds(1))
        let refused = try #require(try await probe("http://127.0.0.1:1/").phases)
        #expect(refused.connect == nil && refused.firstByte == nil)
    }

    @Test func `an unexpected status fails`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 503) }
        let result = try await probe(server.url)
        #expect(result.validation == .failed("unexpected status 503"))
        #expect(result.latency != nil)
        #expect(try await probe(server.url, expectedStatus: 500...599).validation == .valid)
        let headers = try await probe(server.url, method: .head)
        #expect(headers.validation == .failed("unexpected status 503 after `HEAD`"))
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func `a redirect is not followed`(status: Int) async throws {
        let server = try ScriptedServer { request in
            .respond(status: request.target == "/" ? status : 200, headers: [.init("Location", "/login")])
        }
        let result = try await probe("\(server.url)/")
        #expect(result.validation == .failed("unexpected status \(status), location `/login`"))
        #expect(server.requests.map(\.target) == ["/"])
    }

    @Test func `the target of a redirect is reported without its secrets`() async throws {
        let server = try ScriptedServer { _ in
            .respond(
                status: 302,
                headers: [.init("Location", "https://user:hush@host/login?token=hush&page=2")]
            )
        }
        let location = "location `https://host/login?token=REDACTED&page=2`"
        #expect(try await probe(server.url).validation == .failed("unexpected status 302, \(location)"))
    }

    @Test func `the body is compared with the expected one`() async throws {
        let server = try ScriptedServer { _ in .respond("success, more") }
        let cases: [(HTTPProbe.ExpectedBody, PathValidation)] = [
            (.prefix(Data("success".utf8)), .valid),
            (.prefix(Data("more".utf8)), .failed("the body does not begin with the expected bytes")),
            (.contains(Data("more".utf8)), .valid),
            (.contains(Data()), .valid),
            (.contains(Data("less".utf8)), .failed("the body does not contain the expected bytes")),
        ]
        for (expected, validation) in cases {
            #expect(try await probe(server.url, expectedBody: expected).validation == validation)
        }
    }

    @Test func `HEAD is sent as HEAD`() async throws {
        let server = try ScriptedServer { _ in
            .respond(status: 200, headers: [.init("Content-Length", "9999999")])
        }
        #expect(try await probe(server.url, method: .head).validation == .valid)
        #expect(server.requests.map(\.method) == ["HEAD"])
    }

    // MARK: The request

    @Test func `the server selects the version of HTTP, unless the probe requires HTTP/1.1`() throws {
        let url = "https://a.example/"
        let probes = try [HTTPProbe(url: url), HTTPProbe(url: url, httpVersion: .http1)]
        #expect(probes.map { $0.request(to: nil, over: [path]).usesHTTP1 } == [false, true])
    }

    @Test func `a probe sends no session fields, and a unique query only on request`() async throws {
        let server = try ScriptedServer { _ in
            .respond(status: 200, headers: [.init("Set-Cookie", "id=1; Path=/")])
        }
        for _ in 0..<2 { _ = try await probe("\(server.url)/a?b=c") }
        for _ in 0..<2 { _ = try await probe("\(server.url)/a?b=c", bypassesCaches: true) }
        let requests = server.requests
        #expect(requests.prefix(2).map(\.target) == ["/a?b=c", "/a?b=c"])
        #expect(requests.suffix(2).allSatisfy { $0.target.hasPrefix("/a?b=c&netwatch=") })
        #expect(Set(requests.map(\.target)).count == 3)
        #expect(requests.allSatisfy { $0.values(of: "Cookie").isEmpty })
        #expect(requests.allSatisfy { $0.values(of: "Cache-Control") == ["no-cache"] })
        #expect(requests.map(\.connection) == [1, 2, 3, 4], "each probe has its own connection")
    }

    @Test func `a probe of the watched host connects to the path's destination`() async throws {
        let server = try ScriptedServer()
        let engine = try TransferEngine(resolver: NameResolver { _ in .failure(.init(code: -2)) })
        let url = "http://netwatch.invalid:\(server.port)/"
        let probe = try HTTPProbe(url: url, engine: engine)
        let host = try #require(NetworkHost("NETWATCH.invalid."))
        #expect(await probe.run(to: host, over: path).validation == .valid)
        let other = try #require(NetworkHost("other.invalid"))
        guard case .failed = await probe.run(to: other, over: path).validation else {
            return #expect(Bool(false), "the name of another host was not looked up")
        }
        #expect(server.requests.count == 1)
    }

    // MARK: Limits

    @Test(arguments: EndlessAnswer.all)
    func `an endless response is aborted`(answer: EndlessAnswer) async throws {
        let server = try ScriptedServer(answer.script)
        let result = try await probe(server.url, timeout: answer.timeout)
        #expect(result.validation == .failed(answer.words))
        await server.openConnections(atMost: 0)
    }

    @Test func `an endless body is aborted at the size limit`() async throws {
        let server = try ScriptedServer { _ in .endlessBody }
        let result = try await probe(server.url, timeout: .seconds(60))
        #expect(result.validation == .failed("the response body is longer than 65536 bytes"))
        await server.openConnections(atMost: 0)
    }

    @Test func `a slow body is aborted at the time limit`() async throws {
        let server = try ScriptedServer { _ in .drippingBody }
        let result = try await probe(server.url, timeout: .seconds(10))
        #expect(result.validation == .failed("no complete response within 10.0 seconds"))
        #expect(result.latency != nil, "the head arrived")
        await server.openConnections(atMost: 0)
    }

    @Test func `an unexpected status is reported rather than the body's error`() async throws {
        let server = try ScriptedServer { _ in
            .send("HTTP/1.1 500 Oops\r\nContent-Length: 10\r\n\r\nabc", then: .close)
        }
        #expect(try await probe(server.url).validation == .failed("unexpected status 500"))
    }

    @Test func `characters from a server that are not printable are escaped`() async throws {
        let server = try ScriptedServer { _ in
            let location = "/\u{1b}[2J\u{202e}" + String(repeating: "x", count: 5000)
            return .respond(status: 302, headers: [.init("Location", location)])
        }
        guard case .failed(let words) = try await probe(server.url).validation else {
            return #expect(Bool(false), "a redirect is not valid")
        }
        #expect(words.hasPrefix("unexpected status 302, location `/\\u{1B}[2J\\u{202E}xxx"))
        #expect(words.count < 300)
    }

    @Test func `cancelling a probe ends it immediately`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        let task = Task { try await probe(server.url, timeout: .seconds(60)).validation }
        await server.requests(atLeast: 1)
        task.cancel()
        #expect(try await task.value == .failed("cancelled"))
        await server.openConnections(atMost: 0)
    }

    @Test func `network failures have short messages`() async throws {
        let refusing = try RefusingPort()
        #expect(try await probe(refusing.url).validation == .failed("connection refused"))
        let silent = try UnansweringPort()
        let result = try await probe("http://127.0.0.1:\(silent.port)", timeout: .milliseconds(200))
        #expect(result.validation == .failed("no connection within 0.2 seconds"))
        #expect(result.latency == nil)
        let closing = try ScriptedServer { _ in .close }
        #expect(try await probe(closing.url).validation == .failed("Empty reply from server"))
    }

    // MARK: Creating a probe

    @Test(arguments: ["", "example.com", "ftp://example.com/", "file:///etc/passwd", "http:///path"])
    func `an invalid URL is refused, and the error lists what is accepted`(url: String) throws {
        let error = #expect(throws: InvalidProbe.self) { try HTTPProbe(url: url) }
        #expect(error?.description.hasSuffix("http://HOST/… or https://HOST/… is accepted") == true)
    }

    @Test func `limits are clamped to their range`() throws {
        let small = try HTTPProbe(url: "HTTPS://example.com", timeout: .zero, maximumBodySize: -1)
        #expect(small.timeout == .milliseconds(10))
        #expect(small.maximumBodySize == 0)
        #expect(small.name == "https")
        let large = try HTTPProbe(url: "http://example.com", timeout: .seconds(999), maximumBodySize: .max)
        #expect(large.timeout == .seconds(60))
        #expect(large.maximumBodySize == 1_048_576)
        #expect(throws: InvalidProbe.self) {
            try HTTPProbe(url: "http://example.com", method: .head, expectedBody: .prefix(Data()))
        }
    }
}

/// HTTP probes of one host over two cables.
@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .timeLimit(.minutes(5))
)
struct HTTPProbePathTests {
    @Test func `a probe uses the interface that the watch requires, otherwise the preferred route`()
        async throws
    {
        let testbed = try TwoCableTestbed()
        let server = try ScriptedServer(address: TwoCableTestbed.host, in: testbed.far)
        let engine = try TransferEngine(networkNamespace: testbed.near.path)
        let monitor = PathMonitor(of: testbed.near)
        let host = try #require(NetworkHost(TwoCableTestbed.host))
        let probe = try HTTPProbe(url: server.url, engine: engine)
        for interface in ["near0", nil, "near1"] {
            var options = PathOptions()
            options.interface = interface
            let path = try #require(monitor.watch(.host(host), options: options) { _ in }.status.path)
            #expect(await probe.run(to: host, over: path).validation == .valid)
        }
        #expect(server.peers == [testbed.first.source, testbed.second.source, testbed.second.source])
    }
}
