import ClientCore
import Foundation
import FoundationNetworking
import NetwatchTestSupport
import Testing

/// The examples in the guides' section "Adapting and Retrying Requests".
@Suite(.timeLimit(.minutes(5))) struct AdaptingAndRetryingTests {
    private let sessionManager = SessionManager(configuration: .ephemeral)

    // MARK: The adapter

    private class AccessTokenAdapter: RequestAdapter {
        private let accessToken: String
        private let prefix: String

        init(accessToken: String, prefix: String) {
            self.accessToken = accessToken
            self.prefix = prefix
        }

        func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
            var urlRequest = urlRequest

            if let urlString = urlRequest.url?.absoluteString, urlString.hasPrefix(prefix) {
                urlRequest.setValue("Bearer " + accessToken, forHTTPHeaderField: "Authorization")
            }

            return urlRequest
        }
    }

    @Test func `an adapter adds the token to matching requests`() async throws {
        let httpbin = try await HTTPBin.shared()
        sessionManager.adapter = AccessTokenAdapter(accessToken: "1234", prefix: httpbin.url)
        let response = await once {
            sessionManager.request("\(httpbin.url)/bearer").validate().responseJSON(completionHandler: $0)
        }
        #expect(object(response.value)["token"] as? String == "1234")

        let elsewhere = try ScriptedServer()
        _ = await once { sessionManager.request(elsewhere.url).response(completionHandler: $0) }
        #expect(elsewhere.requests.map { $0.values(of: "Authorization") } == [[]])
    }

    @Test func `an adapter's error is the request's error`() async throws {
        struct NoToken: Error {}
        struct Refusing: RequestAdapter {
            func adapt(_ urlRequest: URLRequest) throws -> URLRequest { throw NoToken() }
        }
        let server = try ScriptedServer()
        sessionManager.adapter = Refusing()
        let response = await once { sessionManager.request(server.url).response(completionHandler: $0) }
        #expect(response.error is NoToken)
        #expect(server.requests.isEmpty)
    }

    @Test func `a request whose adapter throws has the request as it was created`() async throws {
        let created = try URLRequest(url: "http://127.0.0.1:1/", method: .get, headers: ["X-Own": "1"])
        sessionManager.adapter = Expiring(validCount: 0)
        let request = sessionManager.request(created)
        #expect(request.request == created)
        #expect(request.task?.currentRequest == created)
        let response = await once { request.response(completionHandler: $0) }
        #expect(response.request == created)
        #expect(response.error is Expiring.Expired)
    }

    /// An adapter that throws after a number of calls.
    private final class Expiring: RequestAdapter {
        struct Expired: Error {}
        let calls = Recorder<URLRequest>()
        private let validCount: Int

        init(validCount: Int) { self.validCount = validCount }

        func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
            calls.record(urlRequest)
            guard calls.values.count <= validCount else { throw Expired() }
            var urlRequest = urlRequest
            urlRequest.setValue("yes", forHTTPHeaderField: "X-Adapted")
            return urlRequest
        }
    }

    // MARK: The retrier

    private class Backoff: RequestRetrier {
        let delays = Recorder<TimeInterval>()

        func should(
            _ manager: SessionManager,
            retry request: Request,
            with error: Error,
            completion: @escaping RequestRetryCompletion
        ) {
            guard let response = request.task?.response as? HTTPURLResponse, response.statusCode == 503,
                request.retryCount < 3
            else {
                completion(false, 0.0)
                return
            }
            let delay = 0.001 * pow(2, Double(request.retryCount))
            delays.record(delay)
            completion(true, delay)
        }
    }

    /// Records the delays before retries.
    private final class Waits: EventMonitor {
        let delays = Recorder<TimeInterval>()

        func request(_ request: Request, willRetryAfter delay: TimeInterval, dueTo error: Error) {
            delays.record(delay)
        }
    }

    @Test func `a retrier can increase its delay`() async throws {
        let server = try ScriptedServer { $0.number < 4 ? .respond(status: 503) : .respond("well") }
        let (backoff, waits) = (Backoff(), Waits())
        sessionManager.retrier = backoff
        sessionManager.eventMonitors = [waits]
        let request = sessionManager.request(server.url).validate()
        let response = await once { request.responseString(completionHandler: $0) }
        #expect(response.value == "well")
        #expect(backoff.delays.values == [0.001, 0.002, 0.004])
        #expect(request.retryCount == 3)
        #expect(waits.delays.values == [0.001, 0.002, 0.004])
    }

    @Test func `after the last retry the request fails`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 503) }
        sessionManager.retrier = Backoff()
        let response = await once {
            sessionManager.request(server.url).validate().response(completionHandler: $0)
        }
        #expect((response.error as? AFError)?.responseCode == 503)
        #expect(server.requests.count == 4)
    }

    @Test func `data of a failed attempt is discarded`() async throws {
        let server = try ScriptedServer { request in
            request.number == 1 ? .respond(status: 503, body: Array("sorry".utf8)) : .respond("ok")
        }
        sessionManager.retrier = Backoff()
        let request = sessionManager.request(server.url).validate()
        let response = await once { request.response(completionHandler: $0) }
        #expect(response.data == Data("ok".utf8))
        #expect(response.error == nil)
        #expect(request.progress.completedUnitCount == 2)
    }

    @Test(arguments: [false, true])
    func `an upload is retried with its complete body`(isFile: Bool) async throws {
        let server = try ScriptedServer { $0.number < 3 ? .respond(status: 503) : .respond("ok") }
        let scratch = try ScratchDirectory()
        let body = [UInt8](repeating: 7, count: 200_000)
        let file = URL(fileURLWithPath: try scratch.write(body, to: "body"))
        sessionManager.retrier = Backoff()
        let request =
            isFile
            ? sessionManager.upload(file, to: server.url) : sessionManager.upload(Data(body), to: server.url)
        let response = await once { request.validate().responseString(completionHandler: $0) }
        #expect(response.value == "ok")
        #expect(server.requests.map(\.body.count) == [200_000, 200_000, 200_000])
        #expect(request.uploadProgress.completedUnitCount == 200_000)
        #expect(request.uploadProgress.totalUnitCount == 200_000)
    }

    @Test func `a stream that was read is not sent again`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 503) }
        sessionManager.retrier = Backoff()
        let response = await once {
            sessionManager.upload(InputStream(data: Data("once".utf8)), to: server.url)
                .validate().response(completionHandler: $0)
        }
        #expect((response.error as? URLError)?.code == .requestBodyStreamExhausted)
        #expect(server.requests.map(\.body) == [Array("once".utf8)])
    }

    @Test func `an adapter's error in a retry ends the request`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 503) }
        let asked = Recorder<UInt>()
        let adapter = Expiring(validCount: 1)
        sessionManager.adapter = adapter
        sessionManager.retrier = Retrying {
            asked.record($0.retryCount)
            return (true, 0)
        }
        let request = sessionManager.request(server.url).validate()
        let response = await once { request.response(completionHandler: $0) }
        #expect(response.error is Expiring.Expired)
        #expect(asked.values == [0])
        #expect(adapter.calls.values.count == 2)
        #expect(request.request?.value(forHTTPHeaderField: "X-Adapted") == "yes")
    }

    // MARK: One refresh for many failures

    /// Returns a service that accepts one token at a time. It responds to the token refresh only after it has rejected
    /// all requests.
    private static func service(failures: Int) throws -> (server: ScriptedServer, refused: Recorder<String>) {
        let refused = Recorder<String>()
        let server = try ScriptedServer { request in
            if request.target == "/oauth2/token" {
                // The response to the refresh is sent after all requests have failed.
                return .stall(then: .respond(#"{"access_token": "new", "refresh_token": "newer"}"#))
            }
            if request.values(of: "Authorization") == ["Bearer new"] { return .respond("welcome") }
            refused.record(request.target)
            return .respond(status: 401)
        }
        return (server, refused)
    }

    private func handler(_ server: ScriptedServer) -> OAuth2Handler {
        OAuth2Handler(
            clientID: "12345678",
            baseURLString: server.url,
            accessToken: "old",
            refreshToken: "ef56789a"
        )
    }

    @Test func `concurrent failures share one token refresh and are retried in order`() async throws {
        let (server, _) = try Self.service(failures: 5)
        let oauthHandler = handler(server)
        sessionManager.adapter = oauthHandler
        sessionManager.retrier = oauthHandler
        let values = Recorder<String>()
        for index in 0..<5 {
            sessionManager.request("\(server.url)/\(index)").validate().responseString { response in
                values.record(response.value ?? "\(response.result)")
            }
            // The requests fail one after another, so that their order is known.
            try await oauthHandler.failed.wait { $0.count == index + 1 }
        }
        server.release()
        try await values.wait { $0.count == 5 }
        #expect(values.values == Array(repeating: "welcome", count: 5))
        #expect(server.requests.filter { $0.target == "/oauth2/token" }.count == 1)
        #expect(oauthHandler.retried.values == oauthHandler.failed.values)
        let refresh = try #require(server.requests.first { $0.target == "/oauth2/token" })
        let sent = object(try JSONSerialization.jsonObject(with: Data(refresh.body)))
        #expect(sent["refresh_token"] as? String == "ef56789a")
    }

    @Test func `one handler serves two sessions`() async throws {
        let (server, _) = try Self.service(failures: 2)
        let oauthHandler = handler(server)
        let other = SessionManager(configuration: .default)
        for session in [sessionManager, other] {
            session.adapter = oauthHandler
            session.retrier = oauthHandler
        }
        let values = Recorder<String>()
        for session in [sessionManager, other] {
            session.request("\(server.url)/some/endpoint").validate().responseString { response in
                values.record(response.value ?? "\(response.result)")
            }
        }
        try await oauthHandler.failed.wait { $0.count == 2 }
        server.release()
        try await values.wait { $0.count == 2 }
        #expect(values.values == ["welcome", "welcome"])
        #expect(server.requests.filter { $0.target == "/oauth2/token" }.count == 1)
    }

    @Test func `after a failed refresh the requests fail`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 401) }
        let oauthHandler = handler(server)
        sessionManager.adapter = oauthHandler
        sessionManager.retrier = oauthHandler
        let response = await once {
            sessionManager.request("\(server.url)/x").validate().response(completionHandler: $0)
        }
        #expect((response.error as? AFError)?.responseCode == 401)
        #expect(server.requests.map(\.target) == ["/x", "/oauth2/token"])
    }
}

/// The OAuth 2 handler of the guides, which here also records its calls.
private class OAuth2Handler: RequestAdapter, RequestRetrier {
    private typealias RefreshCompletion = (
        _ succeeded: Bool, _ accessToken: String?, _ refreshToken: String?
    ) -> Void

    let failed = Recorder<String>()
    let retried = Recorder<String>()

    private let sessionManager = SessionManager(configuration: .ephemeral)
    private let lock = NSLock()
    private let clientID: String
    private let baseURLString: String
    private var accessToken: String
    private var refreshToken: String
    private var isRefreshing = false
    private var requestsToRetry: [(target: String, completion: RequestRetryCompletion)] = []

    init(clientID: String, baseURLString: String, accessToken: String, refreshToken: String) {
        self.clientID = clientID
        self.baseURLString = baseURLString
        self.accessToken = accessToken
        self.refreshToken = refreshToken
    }

    // MARK: - RequestAdapter

    func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
        lock.lock(); defer { lock.unlock() }
        guard let urlString = urlRequest.url?.absoluteString, urlString.hasPrefix(baseURLString) else {
            return urlRequest
        }
        var urlRequest = urlRequest
        urlRequest.setValue("Bearer " + accessToken, forHTTPHeaderField: "Authorization")
        return urlRequest
    }

    // MARK: - RequestRetrier

    func should(
        _ manager: SessionManager,
        retry request: Request,
        with error: Error,
        completion: @escaping RequestRetryCompletion
    ) {
        lock.lock(); defer { lock.unlock() }
        guard let response = request.task?.response as? HTTPURLResponse, response.statusCode == 401 else {
            completion(false, 0.0)
            return
        }
        let target = request.request?.url?.path ?? ""
        requestsToRetry.append((target, completion))
        failed.record(target)
        guard !isRefreshing else { return }
        refreshTokens { [weak self] succeeded, accessToken, refreshToken in
            self?.refreshed(succeeded, accessToken, refreshToken)
        }
    }

    private func refreshed(_ succeeded: Bool, _ accessToken: String?, _ refreshToken: String?) {
        lock.lock(); defer { lock.unlock() }
        if let accessToken = accessToken, let refreshToken = refreshToken {
            self.accessToken = accessToken
            self.refreshToken = refreshToken
        }
        for request in requestsToRetry {
            retried.record(request.target)
            request.completion(succeeded, 0.0)
        }
        requestsToRetry.removeAll()
        isRefreshing = false
    }

    private func refreshTokens(completion: @escaping RefreshCompletion) {
        isRefreshing = true
        let parameters: [String: Any] = [
            "access_token": accessToken,
            "refresh_token": refreshToken,
            "client_id": clientID,
            "grant_type": "refresh_token",
        ]
        sessionManager.request(
            "\(baseURLString)/oauth2/token",
            method: .post,
            parameters: parameters,
            encoding: JSONEncoding.default
        )
        .responseJSON { response in
            if let json = response.result.value as? [String: Any],
                let accessToken = json["access_token"] as? String,
                let refreshToken = json["refresh_token"] as? String
            {
                completion(true, accessToken, refreshToken)
            } else {
                completion(false, nil, nil)
            }
        }
    }
}
