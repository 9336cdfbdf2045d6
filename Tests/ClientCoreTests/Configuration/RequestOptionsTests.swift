internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// Timeouts, priorities and limits of individual requests.
@Suite(.timeLimit(.minutes(5))) struct RequestOptionsTests {
    private let session: SessionManager

    init() throws {
        session = SessionManager(engine: try TransferEngine())
    }

    private func request(_ server: ScriptedServer, _ path: String = "/") throws -> URLRequest {
        try URLRequest(url: server.url + path, method: .get)
    }

    @Test func `the total timeout ends a request`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .respond("")) }
        let options = RequestOptions(totalTimeout: 0.2)
        let error = await session.request(try request(server).with(options)).response().error
        #expect((error as? URLError)?.code == .timedOut)
    }

    @Test func `the session's options apply to requests without their own`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .respond("late")) }
        session.requestOptions.totalTimeout = 0.2
        let patient = session.request(try request(server).with(RequestOptions(totalTimeout: 60)))
        let error = await session.request(try request(server)).response().error
        #expect((error as? URLError)?.code == .timedOut)
        server.release()
        #expect(await patient.responseString().value == "late")
    }

    @Test(.enabled(if: TestAuthority.isAvailable, "needs openssl"))
    func `a request uses its own version of HTTP, or else that of the session`() async throws {
        let server = try HostileHTTP2Server("http-1.1-upgrade")
        let manager = ServerTrustPolicyManager(policies: ["127.0.0.1": .disableEvaluation])
        let session = SessionManager(serverTrustPolicyManager: manager)
        let request = try URLRequest(url: server.url, method: .get)
        let own = await session.request(request.with(RequestOptions(httpVersion: .http1))).response()
        #expect(own.response?.statusCode == 200, "\(own.error as Any)")
        session.requestOptions.httpVersion = .http1
        let inherited = await session.request(request).response()
        #expect(inherited.response?.statusCode == 200, "\(inherited.error as Any)")
        let other = await session.request(request.with(RequestOptions(httpVersion: .http2))).response()
        #expect(other.error?.transferFailure?.code == 92, "\(other)")
    }

    @Test func `the connect timeout limits connecting`() async throws {
        let deaf = try UnansweringPort()
        let options = RequestOptions(connectTimeout: 0.2)
        let url = try URLRequest(url: "http://127.0.0.1:\(deaf.port)/", method: .get)
        let error = try #require(await session.request(url.with(options)).response().error)
        #expect(error.transferFailure?.code == 28)
        #expect(error.transferFailure?.phase == .connect)
    }

    @Test func `the idle timeout ends a request to a silent server`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .respond("")) }
        let options = RequestOptions(idleTimeout: 1)
        let error = try #require(await session.request(try request(server).with(options)).response().error)
        #expect(error.transferFailure?.code == 28)
        #expect(error.transferFailure?.phase == .response)
    }

    @Test func `a request's timeout interval overrides the session's options`() throws {
        var request = try URLRequest(url: "http://localhost/", method: .get)
        session.requestOptions.idleTimeout = 5
        #expect(idleTimeout(of: request) == .seconds(5))
        request.timeoutInterval = 7
        #expect(idleTimeout(of: request) == .seconds(7))
        #expect(idleTimeout(of: request.with(RequestOptions(idleTimeout: 9))) == .seconds(9))
    }

    private func idleTimeout(of request: any URLRequestConvertible) -> Duration? {
        let plan = RequestPlan(request)
        let context = session.context
        let core = RequestCore(plan, firstRequest: plan.original, hooks: context.hooks, context: context)
        return plan.original.value.map { core.idleTimeout(of: $0) }
    }

    @Test func `the request with the higher priority is sent first`() async throws {
        let server = try ScriptedServer { $0.number == 1 ? .stall(then: .respond("")) : .respond("") }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpMaximumConnectionsPerHost = 1
        let session = SessionManager(
            engine: try TransferEngine(),
            settings: SessionSettings(configuration)
        )
        var requests = [session.request(try request(server, "/first"))]
        await server.requests(atLeast: 1)
        for priority: Float in [0, 0.5, 1] {
            let options = RequestOptions(priority: priority)
            let path = "/\(Int(priority * 2))"
            requests.append(session.request(try request(server, path).with(options)))
            await requests.last?.hasEnteredEngine()
        }
        server.release()
        for request in requests { _ = await request.response() }
        #expect(server.requests.map(\.target) == ["/first", "/2", "/1", "/0"])
    }

    @Test(arguments: [
        (RequestOptions(connectTimeout: 0), "connectTimeout is 0.0; accepted: more than 0 seconds"),
        (RequestOptions(idleTimeout: -.infinity), "idleTimeout is -inf; accepted: more than 0 seconds"),
        (RequestOptions(totalTimeout: .nan), "totalTimeout is nan; accepted: more than 0 seconds"),
        (RequestOptions(priority: 1.5), "priority is 1.5; accepted: 0 to 1"),
        (RequestOptions(maximumDataBytes: -1), "maximumDataBytes is -1; accepted: 0 or more"),
    ])
    func `an option out of range is refused by name, and nothing is sent`(
        options: RequestOptions,
        words: String
    ) async throws {
        let server = try ScriptedServer()
        let error = try #require(await session.request(try request(server).with(options)).response().error)
        #expect("\(error.localizedDescription)".contains(words))
        #expect(server.connectionCount == 0)
    }

    @Test func `a response above the memory limit fails with a hint`() async throws {
        let server = try ScriptedServer { _ in .respond(String(repeating: "x", count: 1_000)) }
        let exact = session.request(try request(server).with(RequestOptions(maximumDataBytes: 1_000)))
        #expect(await exact.responseData().value?.count == 1_000)
        let over = session.request(try request(server).with(RequestOptions(maximumDataBytes: 999)))
        let response = await over.responseData()
        #expect((response.error as? URLError)?.code == .dataLengthExceedsMaximum)
        #expect(response.error?.transferFailure?.code == 63)
        #expect(response.error?.localizedDescription.contains("999 bytes") == true)
        #expect(response.data?.count == 999)
        #expect(response.response?.statusCode == 200)
    }

    @Test(arguments: [(nil, true), (1_000, true), (999, false)] as [(Int?, Bool)])
    func `a downloaded file above an explicit memory limit is not read`(maximum: Int?, isRead: Bool)
        async throws
    {
        let server = try ScriptedServer { _ in .respond(String(repeating: "x", count: 1_000)) }
        let options = RequestOptions(maximumDataBytes: maximum)
        let download = session.download(try request(server).with(options))
        let data = await download.responseData().result
        let text = await download.responseString().map { Data($0.utf8) }.result
        for result in [data, text] {
            #expect(result.value?.count == (isRead ? 1_000 : nil))
            #expect((result.error as? URLError)?.code == (isRead ? nil : .dataLengthExceedsMaximum))
            #expect(result.error.map { $0.localizedDescription.contains("999 bytes") } ?? isRead)
        }
        let file = await download.response()
        #expect(file.error == nil, "only the handlers that read the file fail")
        try FileManager.default.removeItem(at: try #require(file.temporaryURL))
    }

    @Test func `the default memory limit does not apply to downloaded files`() async throws {
        let length = 17 << 20
        let server = try ScriptedServer { _ in .respond(String(repeating: "x", count: length)) }
        let response = await session.download(server.url).responseData()
        #expect(response.value?.count == length)
        try FileManager.default.removeItem(at: try #require(response.temporaryURL))
    }

    @Test func `the program's own serializer of a download is not limited`() async throws {
        let server = try ScriptedServer { _ in .respond("four") }
        let serializer = DownloadResponseSerializer<String>(serializeResponse: { _, _, file, error in
            if let error { return .failure(error) }
            return .success(file?.path ?? "")
        })
        let download = session.download(try request(server).with(RequestOptions(maximumDataBytes: 1)))
        let path = try #require(await download.response(responseSerializer: serializer).value)
        try FileManager.default.removeItem(atPath: path)
    }

    @Test func `an endless response ends at the default memory limit`() async throws {
        let server = try ScriptedServer { _ in .endlessBody }
        let response = await session.request(server.url).responseData()
        #expect((response.error as? URLError)?.code == .dataLengthExceedsMaximum)
        #expect(response.data?.count == 16 << 20)
    }

    @Test func `options apply to downloads and uploads`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .respond("")) }
        let options = RequestOptions(totalTimeout: 0.2)
        let download = await session.download(try request(server).with(options)).response()
        #expect((download.error as? URLError)?.code == .timedOut)
        let post = try URLRequest(url: server.url, method: .post)
        let upload = await session.upload(Data("x".utf8), with: post.with(options)).response()
        #expect((upload.error as? URLError)?.code == .timedOut)
    }

    @Test func `the last value of each option is used`() throws {
        let inner = try URLRequest(url: "http://localhost/", method: .get)
            .with(RequestOptions(connectTimeout: 1, priority: 0.25))
        let outer = inner.with(RequestOptions(connectTimeout: 2))
        #expect(outer.options == RequestOptions(connectTimeout: 2, priority: 0.25))
        #expect(try outer.asURLRequest().url?.absoluteString == "http://localhost/")
    }
}

extension Request {
    /// Waits until all calls on the request so far have reached the engine and the engine has processed them.
    fileprivate func hasEnteredEngine() async {
        await withCheckedContinuation { done in core.perform { _ in done.resume() } }
        await withCheckedContinuation { done in
            _ = core.context.engine.start(TransferRequest(url: "")) { if case .end = $0 { done.resume() } }
        }
    }
}
