import ClientCore
import Foundation
import FoundationNetworking
import NetwatchTestSupport
import Testing

/// The examples in the guides' section "Session Delegate".
@Suite(.timeLimit(.minutes(5))) struct SessionDelegateTests {
    private let sessionManager = ClientCore.SessionManager(configuration: URLSessionConfiguration.ephemeral)

    // MARK: Override closures

    @Test func `the redirect closure can change the redirected request`() async throws {
        let server = try ScriptedServer { request in
            guard request.number < 3 else { return .respond("stayed") }
            return .respond(status: 302, headers: [.init("Location", "http://127.0.0.1:1/elsewhere")])
        }
        let delegate: ClientCore.SessionDelegate = sessionManager.delegate

        delegate.taskWillPerformHTTPRedirection = { session, task, response, request in
            var finalRequest = request

            if let originalRequest = task.originalRequest,
                let urlString = originalRequest.url?.absoluteString,
                urlString.contains("127.0.0.1")
            {
                finalRequest = originalRequest
            }

            return finalRequest
        }
        let response = await once {
            sessionManager.request("\(server.url)/here").responseString(completionHandler: $0)
        }
        #expect(response.value == "stayed")
        #expect(server.requests.map(\.target) == ["/here", "/here", "/here"])
    }

    @Test func `without a new request the redirect is the response`() async throws {
        let httpbin = try await HTTPBin.shared()
        sessionManager.delegate.taskWillPerformHTTPRedirection = { _, _, _, _ in nil }
        let response = await once {
            sessionManager.request("\(httpbin.url)/redirect-to", parameters: ["url": "/get"])
                .response(completionHandler: $0)
        }
        #expect(response.error == nil)
        #expect(response.response?.statusCode == 302)
        #expect(response.response?.value(forHTTPHeaderField: "Location") == "/get")
    }

    @Test func `redirects are followed by default`() async throws {
        let httpbin = try await HTTPBin.shared()
        let response = await once {
            sessionManager.request("\(httpbin.url)/redirect/2").response(completionHandler: $0)
        }
        #expect(response.response?.url?.path == "/get")
        #expect(response.response?.statusCode == 200)
    }

    @Test func `an endless redirect is an error`() async throws {
        let server = try ScriptedServer { _ in
            .respond(status: 302, headers: [.init("Location", "/again")])
        }
        let response = await once { sessionManager.request(server.url).response(completionHandler: $0) }
        #expect((response.error as? URLError)?.code == .httpTooManyRedirects)
        #expect(server.requests.count == 17)
    }

    @Test func `the challenge closure returns credentials`() async throws {
        let httpbin = try await HTTPBin.shared()
        let asked = Recorder<String>()
        sessionManager.delegate.taskDidReceiveChallenge = { _, _, challenge in
            let space = challenge.protectionSpace
            asked.record("\(space.authenticationMethod) \(space.realm ?? "")")
            return (.useCredential, URLCredential(user: "user", password: "password", persistence: .none))
        }
        for scheme in ["basic-auth", "digest-auth/auth"] {
            let response = await once {
                sessionManager.request("\(httpbin.url)/\(scheme)/user/password").response(
                    completionHandler: $0
                )
            }
            #expect(response.response?.statusCode == 200)
        }
        #expect(
            asked.values == [
                "\(NSURLAuthenticationMethodHTTPBasic) Fake Realm",
                "\(NSURLAuthenticationMethodHTTPDigest) me@kennethreitz.com",
            ]
        )
    }

    @Test func `the challenge closure can accept the response or cancel`() async throws {
        let httpbin = try await HTTPBin.shared()
        let url = "\(httpbin.url)/basic-auth/user/password"
        sessionManager.delegate.taskDidReceiveChallenge = { _, _, _ in (.performDefaultHandling, nil) }
        let stands = await once { sessionManager.request(url).response(completionHandler: $0) }
        #expect(stands.error == nil)
        #expect(stands.response?.statusCode == 401)
        sessionManager.delegate.taskDidReceiveChallenge = { _, _, _ in
            (.cancelAuthenticationChallenge, nil)
        }
        let cancelled = await once { sessionManager.request(url).response(completionHandler: $0) }
        #expect((cancelled.error as? URLError)?.code == .cancelled)
    }

    @Test func `the response closure can refuse a body`() async throws {
        let server = try ScriptedServer { _ in
            .send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nunwanted", then: .stall(then: .close))
        }
        sessionManager.delegate.dataTaskDidReceiveResponse = { _, _, _ in .cancel }
        let response = await once { sessionManager.request(server.url).response(completionHandler: $0) }
        #expect((response.error as? URLError)?.code == .cancelled)
        #expect(response.response?.statusCode == 200)
    }

    @Test func `closures with a completion decide later`() async throws {
        let server = try ScriptedServer { request in
            request.target == "/old"
                ? .respond(status: 302, headers: [.init("Location", "/new")]) : .respond(request.target)
        }
        let queue = DispatchQueue(label: "later")
        let delegate = sessionManager.delegate
        // The closures with a completion replace those without.
        delegate.taskWillPerformHTTPRedirection = { _, _, _, _ in nil }
        delegate.taskWillPerformHTTPRedirectionWithCompletion = { _, _, _, request, completion in
            queue.async {
                completion(request)
                completion(nil)
            }
        }
        delegate.dataTaskDidReceiveResponseWithCompletion = { _, _, response, completion in
            queue.async { completion(response.url?.path == "/refused" ? .cancel : .allow) }
        }
        let response = await once {
            sessionManager.request("\(server.url)/old").responseString(completionHandler: $0)
        }
        #expect(response.value == "/new")
        let refused = await once {
            sessionManager.request("\(server.url)/refused").response(completionHandler: $0)
        }
        #expect((refused.error as? URLError)?.code == .cancelled)
        // A completion that is released counts as the default.
        delegate.taskWillPerformHTTPRedirectionWithCompletion = { _, _, _, _, _ in }
        delegate.dataTaskDidReceiveResponseWithCompletion = { _, _, _, _ in }
        let followed = await once {
            sessionManager.request("\(server.url)/old").responseString(completionHandler: $0)
        }
        #expect(followed.value == "/new")
        // The redirect itself is the response.
        delegate.taskWillPerformHTTPRedirectionWithCompletion = { _, _, _, _, completion in completion(nil) }
        let redirect = await once {
            sessionManager.request("\(server.url)/old").response(completionHandler: $0)
        }
        #expect(redirect.response?.statusCode == 302)
    }

    @Test(arguments: [true, false])
    func `a request can be cancelled while a closure decides`(isComplete: Bool) async throws {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
        let server = try ScriptedServer { _ in
            isComplete ? .respond("ok") : .send(head + "o", then: .stall(then: .close))
        }
        let kept = Recorder<@Sendable (ResponseDisposition) -> Void>()
        sessionManager.delegate.dataTaskDidReceiveResponseWithCompletion = { _, _, _, completion in
            kept.record(completion)
        }
        let request = sessionManager.request(server.url)
        async let response = once { request.response(completionHandler: $0) }
        try await kept.wait { $0.count == 1 }
        request.cancel()
        #expect((await response.error as? URLError)?.code == .cancelled)
        kept.values.first?(.allow)
    }

    @Test func `a long body waits for the decision`() async throws {
        let body = [UInt8](repeating: 7, count: 5_000_000)
        let server = try ScriptedServer { _ in .respond(status: 200, headers: [], body: body) }
        let kept = Recorder<@Sendable (ResponseDisposition) -> Void>()
        sessionManager.delegate.dataTaskDidReceiveResponseWithCompletion = { _, _, _, completion in
            kept.record(completion)
        }
        async let response = once {
            sessionManager.request(server.url).responseData(completionHandler: $0)
        }
        try await kept.wait { $0.count == 1 }
        kept.values.first?(.allow)
        #expect(await response.value == Data(body))
    }

    @Test func `the completion closure is called at the end`() async throws {
        let httpbin = try await HTTPBin.shared()
        let ended = Recorder<String>()
        sessionManager.delegate.taskDidComplete = { _, task, error in
            let status = (task.response as? HTTPURLResponse)?.statusCode ?? 0
            ended.record("\(task.taskIdentifier) \(status) \(error == nil)")
        }
        for status in [200, 500] {
            _ = await once {
                sessionManager.request("\(httpbin.url)/status/\(status)").response(completionHandler: $0)
            }
        }
        #expect(ended.values == ["1 200 true", "2 500 true"])
    }

    // MARK: Event monitors instead of a subclass

    /// Logs redirects. The guides use a subclass of the delegate for this, which logs and calls `super`.
    private final class RedirectLogger: EventMonitor {
        let log = Recorder<String>()

        func request(
            _ request: Request,
            willFollow response: HTTPURLResponse,
            to urlRequest: URLRequest
        ) {
            log.record("will perform HTTP redirection to request: \(urlRequest.url?.path ?? "")")
        }

        func request(_ request: Request, didReceive response: HTTPURLResponse) {
            log.record("\(response.statusCode)")
        }

        func request(_ request: Request, didEndAttempt attempt: Int, error: Error?) {
            log.record("attempt \(attempt): \(error == nil)")
        }

        func requestDidFinish(_ request: Request, error: Error?) {
            log.record("finished")
        }
    }

    @Test func `an event monitor logs redirects`() async throws {
        let httpbin = try await HTTPBin.shared()
        let logger = RedirectLogger()
        sessionManager.eventMonitors = [logger]
        let response = await once {
            sessionManager.request("\(httpbin.url)/redirect/1").response(completionHandler: $0)
        }
        #expect(response.response?.statusCode == 200)
        #expect(
            logger.log.values == [
                "302", "will perform HTTP redirection to request: /get", "200", "attempt 1: true", "finished",
            ]
        )
    }
}
