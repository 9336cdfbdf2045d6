internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// Redirects over the network.
@Suite(.timeLimit(.minutes(5))) struct RedirectTests {
    private let session: SessionManager

    init() throws {
        session = SessionManager(engine: try TransferEngine())
    }

    private static func redirect(_ status: Int, to location: String, body: String = "")
        -> ScriptedServer.Action
    {
        .respond(status: status, headers: [.init("Location", location)], body: Array(body.utf8))
    }

    @Test func `a redirect is followed, and the last response is returned`() async throws {
        let server = try ScriptedServer { request in
            request.target == "/new" ? .respond("here") : Self.redirect(301, to: "/new", body: "moved")
        }
        let response = await session.request(server.url + "/old").responseString()
        #expect(response.value == "here")
        #expect(response.request?.url?.path == "/old")
        #expect(response.response?.url?.path == "/new")
        #expect(response.metrics?.redirectCount == 1)
        #expect(response.metrics?.transactionMetrics.map { $0.response?.statusCode } == [301, 200])
    }

    @Test(arguments: [
        (Array("/caf\u{e9}".utf8), "/caf%C3%A9"), ([0x2f, 0xe9], "/%E9"),
        ([0x2f, 0xc3, 0xa9, 0xff], "/%C3%A9%FF"),
    ])
    func `bytes beyond ASCII in a location are escaped one by one`(location: [UInt8], target: String)
        async throws
    {
        let server = try ScriptedServer { request in
            guard request.number == 1 else { return .respond("here") }
            let head = "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: "
            return .send(Array(head.utf8) + location + Array("\r\n\r\n".utf8), then: .keep)
        }
        #expect(await session.request(server.url).responseString().value == "here")
        #expect(server.requests.last?.target == target)
    }

    @Test func `a second status line in a head is refused`() async throws {
        let head = "HTTP/1.1 200 OK\r\nHTTP/1.1 302 Found\r\nLocation: /new\r\nContent-Length: 2\r\n\r\n"
        let server = try ScriptedServer { _ in .send(head + "ok", then: .keep) }
        let response = await session.request(server.url + "/").responseString()
        // libcurl: a header line without a colon.
        #expect(response.error?.transferFailure?.code == 8)
        #expect(server.requests.map(\.target) == ["/"])
    }

    @Test func `a percent sign that begins no escape is sent as it is`() async throws {
        let server = try ScriptedServer { request in
            switch request.target {
            case "/": Self.redirect(302, to: "/%zz/a?b=%")
            // Resolved against the URL as it was sent.
            case "/%zz/a?b=%": Self.redirect(302, to: "c%4")
            case "/%zz/c%4" where request.values(of: "Authorization").isEmpty:
                .respond(status: 401, headers: [.init("WWW-Authenticate", "Basic realm=\"here\"")])
            default: .respond(request.target)
            }
        }
        session.delegate.taskDidReceiveChallenge = { _, _, _ in
            (.useCredential, URLCredential(user: "user", password: "password", persistence: .none))
        }
        let response = await session.request(server.url + "/").responseString()
        #expect(response.value == "/%zz/c%4")
        #expect(response.response?.url?.absoluteString == server.url + "/%25zz/c%254")
        #expect(server.requests.map(\.target) == ["/", "/%zz/a?b=%", "/%zz/c%4", "/%zz/c%4"])
    }

    @Test func `cookies and credentials follow the URL, not its text`() async throws {
        let other = try ScriptedServer { .respond($0.target) }
        let elsewhere = other.url
        let server = try ScriptedServer { request in
            switch request.target {
            case "/":
                .respond(
                    status: 302,
                    headers: [.init("Location", "/%zz"), .init("Set-Cookie", "a=1; Path=/")]
                )
            default: Self.redirect(302, to: elsewhere + "/%zz")
            }
        }
        let session = SessionManager(engine: try TransferEngine(), settings: SessionSettings(.ephemeral))
        let request = session.request(server.url + "/", headers: ["Authorization": "Bearer 1"])
        let response = await request.responseString()
        #expect(response.value == "/%zz")
        #expect(server.requests.last?.target == "/%zz")
        #expect(server.requests.last?.values(of: "Cookie") == ["a=1"])
        #expect(server.requests.last?.values(of: "Authorization") == ["Bearer 1"])
        #expect(other.requests.first?.values(of: "Authorization") == [])
    }

    @Test func `a URL that the delegate has changed is sent instead of the location`() async throws {
        let server = try ScriptedServer { request in
            request.target == "/" ? Self.redirect(302, to: "/%zz") : .respond(request.target)
        }
        session.delegate.taskWillPerformHTTPRedirection = { _, _, _, request in
            var request = request
            request.url?.append(path: "er")
            return request
        }
        #expect(try await session.request(server.url + "/").string == "/%25zz/er")
    }

    @Test func `the seventeenth redirect is an error`() async throws {
        let server = try ScriptedServer { Self.redirect(302, to: "/\($0.number)") }
        let response = await session.request(server.url).response()
        #expect((response.error as? URLError)?.code == .httpTooManyRedirects)
        #expect(response.error?.localizedDescription == "more than 16 redirects")
        #expect(server.requests.count == 17)
    }

    @Test func `credentials are not sent to another origin`() async throws {
        let other = try ScriptedServer { _ in .respond("") }
        let elsewhere = other.url
        let server = try ScriptedServer { _ in Self.redirect(302, to: elsewhere + "/") }
        let request = session.request(server.url, headers: ["Authorization": "Bearer 1", "X-Other": "2"])
            .authenticate(user: "user", password: "secret")
        _ = await request.response()
        #expect(server.requests.first?.values(of: "Authorization") == ["Bearer 1"])
        #expect(other.requests.first?.values(of: "Authorization") == [])
        #expect(other.requests.first?.values(of: "X-Other") == ["2"])
    }

    @Test func `an adapter is called before the first request, and a redirect keeps its other fields`()
        async throws
    {
        let adapter = TaggingAdapter()
        session.adapter = adapter
        let other = try ScriptedServer { _ in .respond("") }
        let elsewhere = other.url
        let server = try ScriptedServer { _ in Self.redirect(302, to: elsewhere + "/") }
        _ = await session.request(server.url).response()
        #expect(adapter.calls.values.count == 1)
        #expect(server.requests.first?.values(of: "X-Api-Key") == ["secret"])
        #expect(other.requests.first?.values(of: "X-Api-Key") == [])
        #expect(other.requests.first?.values(of: "X-Company-Key") == ["1"])
    }

    @Test(arguments: [307, 308], [false, true])
    func `a body is sent to another origin only if permitted`(status: Int, isPermitted: Bool) async throws {
        let other = try ScriptedServer { .respond($0.target) }
        let elsewhere = other.url
        let server = try ScriptedServer { _ in Self.redirect(status, to: elsewhere + "/new") }
        session.requestOptions.redirects = isPermitted ? .crossOriginData : []
        var request = try URLRequest(url: server.url, method: .put)
        request.httpBody = Data("x".utf8)
        for sent in [session.request(request), session.upload(Data("x".utf8), to: server.url, method: .put)] {
            let response = await sent.responseString()
            #expect(response.value == (isPermitted ? "/new" : nil))
            if isPermitted { continue }
            guard case AFError.redirectRefused(.bodyToOtherOrigin(_, let target))? = response.error else {
                Issue.record("\(response.result)")
                continue
            }
            #expect(target.absoluteString == elsewhere + "/new")
            #expect(response.error?.localizedDescription.contains(elsewhere) == true)
        }
        #expect(other.requests.map(\.body) == (isPermitted ? [Array("x".utf8), Array("x".utf8)] : []))
        // A request without a body is redirected with its method.
        request.httpBody = nil
        #expect(try await session.request(request).string == "/new")
    }

    @Test func `the delegate's closure can change the redirect's target`() async throws {
        let server = try ScriptedServer { request in
            request.target == "/" ? Self.redirect(302, to: "/new", body: "moved") : .respond(request.target)
        }
        session.delegate.taskWillPerformHTTPRedirection = { _, task, response, request in
            #expect(task.originalRequest?.url?.path == "/")
            #expect(response.statusCode == 302)
            var request = request
            request.url?.append(path: "er")
            return request
        }
        #expect(try await session.request(server.url + "/").string == "/new/er")
        session.delegate.taskWillPerformHTTPRedirection = { _, _, _, _ in nil }
        let response = await session.request(server.url + "/").responseString()
        #expect(response.response?.statusCode == 302)
        #expect(response.value == "moved")
    }

    @Test func `the endless body of a redirect is not read`() async throws {
        let server = try ScriptedServer { request in
            request.target == "/new"
                ? .respond("here")
                : .respond(
                    status: 302,
                    headers: [.init("Location", "/new")],
                    body: [UInt8](repeating: 0, count: 50_000_000)
                )
        }
        let response = await session.request(server.url).responseString()
        #expect(response.value == "here")
        let received = response.metrics?.transactionMetrics.first?.countOfResponseBodyBytesReceived ?? 0
        #expect(received < 10_000_000)
    }

    /// Suspends the request when its first response arrives.
    private struct Suspending: EventMonitor {
        let suspended = Recorder<Request>()

        func request(_ request: Request, didReceive response: HTTPURLResponse) {
            guard response.statusCode == 302 else { return }
            request.suspend()
            suspended.record(request)
        }
    }

    @Test(arguments: [true, false])
    func `a suspended request follows no redirect`(isResumed: Bool) async throws {
        let head = "HTTP/1.1 302 Found\r\nLocation: /new\r\nContent-Length: 1\r\n\r\n"
        let server = try ScriptedServer { request in
            request.target == "/new"
                ? .respond("here") : .send(head, then: .stall(then: .send("x", then: .keep)))
        }
        let monitor = Suspending()
        session.eventMonitors = [monitor]
        // Breaks a retain cycle: the monitor retains the request, which retains the session's monitors.
        defer { session.eventMonitors = [] }
        let request = session.request(server.url)
        try await monitor.suspended.wait { !$0.isEmpty }
        server.release()
        let response = Recorder<DefaultDataResponse>()
        request.response(queue: .global()) { response.record($0) }
        let other = SessionManager(engine: try TransferEngine())
        #expect(try await other.request(server.url + "/new").string == "here")
        #expect(server.requests.map(\.target) == ["/", "/new"])
        if isResumed { request.resume() } else { request.cancel() }
        try await response.wait { !$0.isEmpty }
        let error = response.values.first?.error as? URLError
        #expect(error?.code == (isResumed ? nil : .cancelled))
        #expect(server.requests.count == (isResumed ? 3 : 2))
    }

    @Test func `a delegate's credentials are used for redirects to the same origin`() async throws {
        let server = try ScriptedServer { request in
            if request.target == "/old" { return Self.redirect(302, to: "/new") }
            guard request.values(of: "Authorization").isEmpty else {
                return request.target == "/new" ? Self.redirect(302, to: "/newer") : .respond("welcome")
            }
            return .respond(status: 401, headers: [.init("WWW-Authenticate", "Basic realm=\"here\"")])
        }
        session.delegate.taskDidReceiveChallenge = { _, _, _ in
            (.useCredential, URLCredential(user: "user", password: "password", persistence: .none))
        }
        #expect(try await session.request(server.url + "/old").string == "welcome")
    }

    // MARK: Between two hops

    /// Returns a session with one connection per host, which therefore sends one request at a time.
    private func serialSession() throws -> SessionManager {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpMaximumConnectionsPerHost = 1
        return SessionManager(engine: try TransferEngine(), settings: SessionSettings(configuration))
    }

    /// Returns a request that is suspended while it is redirected, between its hops.
    ///
    /// - Parameter session: A ``serialSession()``.
    private func heldRequest(_ server: ScriptedServer, _ session: SessionManager) async -> DataRequest {
        session.startRequestsImmediately = false
        let request = session.request(server.url)
        session.delegate.taskWillPerformHTTPRedirection = { [core = request.core] _, _, _, next in
            core.assumeIsolated { $0.handle(.suspended) }
            return next
        }
        request.resume()
        await server.requests(atLeast: 1)
        // The session sends this second request only after the first hop has ended. So the queue of the first request
        // has received the end of the hop by now.
        _ = await session.request(server.url + "/other").response()
        #expect(await isHeld(request))
        // Breaks a retain cycle: the closure retains the request, which retains the session's delegate.
        session.delegate.taskWillPerformHTTPRedirection = nil
        return request
    }

    private func isHeld(_ request: Request) async -> Bool {
        await withCheckedContinuation { turn in
            request.core.perform { turn.resume(returning: $0.current.hop?.isHeld == true) }
        }
    }

    private func redirecting() throws -> ScriptedServer {
        try ScriptedServer { request in
            guard request.target == "/" else { return .respond("there") }
            return .respond(status: 302, headers: [.init("Location", "/there")])
        }
    }

    @Test func `a suspended request does not follow a redirect before it is resumed`() async throws {
        let server = try redirecting()
        let session = try serialSession()
        let request = await heldRequest(server, session)
        #expect(server.requests.map(\.target) == ["/", "/other"])
        request.resume()
        #expect(try await request.string == "there")
    }

    @Test func `a request cancelled between two hops ends`() async throws {
        let server = try redirecting()
        let session = try serialSession()
        let request = await heldRequest(server, session)
        request.cancel()
        #expect((await request.response().error as? URLError)?.code == .cancelled)
        #expect(server.requests.map(\.target) == ["/", "/other"])
    }
}

/// An adapter that adds a field with a well-known secret, and a field whose name ClientCore does not know.
private struct TaggingAdapter: RequestAdapter {
    let calls = Recorder<URL?>()

    func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
        calls.record(urlRequest.url)
        var request = urlRequest
        request.setValue("secret", forHTTPHeaderField: "X-Api-Key")
        request.setValue("1", forHTTPHeaderField: "X-Company-Key")
        return request
    }
}
