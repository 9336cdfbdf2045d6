internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// The effect of a session's configuration on its requests.
@Suite(.timeLimit(.minutes(5))) struct SessionTests {
    private func session(_ change: (URLSessionConfiguration) -> Void = { _ in }) throws -> SessionManager {
        let configuration = URLSessionConfiguration.ephemeral
        change(configuration)
        return SessionManager(engine: try TransferEngine(), settings: SessionSettings(configuration))
    }

    @Test func `cookies are sent to the server that set them, also in redirects`() async throws {
        let server = try ScriptedServer { request in
            guard request.target == "/set" else { return .respond("") }
            let headers: [ScriptedServer.Header] = [
                .init("Location", "/got"), .init("Set-Cookie", "a=1; Expires=Wed, 21 Oct 2099 07:28:00 GMT"),
                .init("Set-Cookie", "b=2; Max-Age=60"),
            ]
            return .respond(status: 302, headers: headers)
        }
        let session = try session()
        _ = await session.request(server.url + "/set").response()
        #expect(server.requests.last?.values(of: "Cookie") == ["a=1; b=2"])
        var plain = try URLRequest(url: server.url, method: .get)
        plain.httpShouldHandleCookies = false
        _ = await session.request(plain).response()
        #expect(server.requests.last?.values(of: "Cookie") == [])
        #expect(session.request(server.url).cURLDescription().contains("a=1; b=2"))
    }

    @Test func `a request's fields override the session's, whatever their case`() async throws {
        let server = try ScriptedServer()
        let session = try session { $0.httpAdditionalHeaders = ["X-One": "session", "DNT": "1"] }
        _ = await session.request(server.url, headers: ["x-one": "request"]).response()
        #expect(server.requests.last?.values(of: "X-One") == ["request"])
        #expect(server.requests.last?.values(of: "DNT") == ["1"])
    }

    @Test(arguments: [RedirectOptions(), .crossOriginData])
    func `a session's fields are sent to another origin only if permitted, and its credentials never`(
        redirects: RedirectOptions
    ) async throws {
        let other = try ScriptedServer()
        let elsewhere = other.url
        let server = try ScriptedServer { _ in
            .respond(status: 302, headers: [.init("Location", elsewhere)])
        }
        let session = try session {
            $0.httpAdditionalHeaders = [
                "Authorization": "Bearer 1", "X-Tenant": "1", "Accept-Language": "de",
            ]
        }
        session.requestOptions.redirects = redirects
        _ = await session.request(server.url).response()
        #expect(server.requests.last?.values(of: "Authorization") == ["Bearer 1"])
        #expect(other.requests.last?.values(of: "Authorization") == [])
        #expect(other.requests.last?.values(of: "X-Tenant") == (redirects.isEmpty ? [] : ["1"]))
        #expect(other.requests.last?.values(of: "Accept-Language") == ["de"])
    }

    @Test func `a session's Host field is not sent to another server`() async throws {
        let other = try ScriptedServer()
        let elsewhere = other.url
        let server = try ScriptedServer { _ in
            .respond(status: 302, headers: [.init("Location", elsewhere)])
        }
        let session = try session { $0.httpAdditionalHeaders = ["Host": "one.example"] }
        _ = await session.request(server.url).response()
        #expect(server.requests.last?.values(of: "Host") == ["one.example"])
        #expect(other.requests.last?.values(of: "Host") == [elsewhere.replacing("http://", with: "")])
    }

    @Test func `every request fails with an unsupported configuration's error`() async throws {
        let session = try session { $0.connectionProxyDictionary = ["HTTPProxy": "proxy.example"] }
        let error = await session.request("http://127.0.0.1:1/").response().error
        guard case .sessionConfigurationRefused(let property) = error as? AFError else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(property.contains("connectionProxyDictionary"))
    }

    @Test func `handlers without a queue are called on the session's queue`() async throws {
        let server = try ScriptedServer()
        let session = try session()
        let queue = DispatchQueue(label: "handlers")
        let key = DispatchSpecificKey<Bool>()
        queue.setSpecific(key: key, value: true)
        session.completionQueue = queue
        let (onQueue, progressOnQueue) = (Recorder<Bool>(), Recorder<Bool>())
        session.upload(Data("body".utf8), to: server.url)
            .uploadProgress { _ in progressOnQueue.record(DispatchQueue.getSpecific(key: key) == true) }
            .responseData { _ in onQueue.record(DispatchQueue.getSpecific(key: key) == true) }
        try await onQueue.wait { !$0.isEmpty }
        try await progressOnQueue.wait { !$0.isEmpty }
        #expect(onQueue.values + progressOnQueue.values.prefix(1) == [true, true])
    }

    @Test func `nothing is sent before resume if the session does not start requests`() async throws {
        let server = try ScriptedServer()
        let session = try session()
        session.startRequestsImmediately = false
        let request = session.request(server.url + "/held")
        session.startRequestsImmediately = true
        _ = await session.request(server.url + "/other").response()
        #expect(server.requests.map(\.target) == ["/other"])
        let done = Recorder<Bool>()
        request.response(queue: .global()) { _ in done.record(true) }
        request.resume()
        try await done.wait { !$0.isEmpty }
        #expect(server.requests.map(\.target) == ["/other", "/held"])
    }

    @Test func `a session releases its finished requests`() async throws {
        let server = try ScriptedServer()
        let session = try session()
        weak var request: DataRequest?
        let core: RequestCore
        do {
            let made = session.request(server.url)
            request = made
            core = made.core
            _ = await made.response()
        }
        #expect(session.context.running.isEmpty)
        // Waits for another turn of the queue, because the turn that called the handlers may still retain the request.
        await withCheckedContinuation { turn in core.perform { _ in turn.resume() } }
        #expect(request == nil)
    }

    @Test func `the error names a session header field that cannot be sent`() async throws {
        let server = try ScriptedServer()
        for value in ["a\u{1}b", "a\r\nX-Injected: 1", "a\0b"] {
            let configuration = URLSessionConfiguration.ephemeral
            configuration.httpAdditionalHeaders = ["X-Own": value]
            let session = SessionManager(configuration: configuration)
            let error = await session.request(server.url).response().error
            guard case .urlRequestValidationFailed(.invalidHeader("X-Own", value))? = error as? AFError else {
                throw Unexpected(outcome: "\(String(describing: error))")
            }
        }
        #expect(server.connectionCount == 0)
    }
}
