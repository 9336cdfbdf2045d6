import ClientCore
import Foundation
import FoundationNetworking
import NetwatchTestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct SessionManagerTests {
    private let own = ["Accept-Encoding", "Accept-Language", "User-Agent"]

    @Test func `the default session sends the default header fields`() async throws {
        let httpbin = try await HTTPBin.shared()
        let sent = try await ClientCore.request("\(httpbin.url)/anything").echo.headers
        let headers = SessionManager.defaultHTTPHeaders
        #expect(Set(headers.keys) == Set(own))
        for name in own { #expect(sent[name] == headers[name]) }
    }

    @Test func `a custom session sends no default header fields`() async throws {
        let httpbin = try await HTTPBin.shared()
        let sessionManager = ClientCore.SessionManager(configuration: URLSessionConfiguration.default)
        let sent = try await sessionManager.request("\(httpbin.url)/anything").echo.headers
        #expect(sent["Accept-Language"] == nil)
        #expect(sent["Accept-Encoding"] == nil)
        #expect(sent["User-Agent"] != SessionManager.defaultHTTPHeaders["User-Agent"])
    }

    @Test func `a session's header fields are sent with every request, and the request's own override them`()
        async throws
    {
        let httpbin = try await HTTPBin.shared()
        var defaultHeaders = ClientCore.SessionManager.defaultHTTPHeaders
        defaultHeaders["DNT"] = "1 (Do Not Track Enabled)"
        let configuration = URLSessionConfiguration.default
        configuration.httpAdditionalHeaders = defaultHeaders
        let sessionManager = ClientCore.SessionManager(configuration: configuration)
        let first = try await sessionManager.request("\(httpbin.url)/anything").echo.headers
        #expect(first["Dnt"] == "1 (Do Not Track Enabled)")
        for name in own { #expect(first[name] == defaultHeaders[name]) }
        let second = sessionManager.request("\(httpbin.url)/anything", headers: ["dnt": "0"])
        #expect(try await second.echo.headers["Dnt"] == "0")
    }

    @Test func `ephemeral sessions do not share cookies`() async throws {
        let httpbin = try await HTTPBin.shared()
        let sessionManager = ClientCore.SessionManager(configuration: URLSessionConfiguration.ephemeral)
        let set = await sessionManager.request("\(httpbin.url)/cookies/set/fruit/pear").responseJSON()
        #expect(set.response?.url?.path == "/cookies")
        let cookies = try await self.cookies(of: sessionManager, at: httpbin)
        #expect(cookies == ["cookies": ["fruit": "pear"]])
        let other = ClientCore.SessionManager(configuration: URLSessionConfiguration.ephemeral)
        #expect(try await self.cookies(of: other, at: httpbin) == ["cookies": [:]])
        let shared = HTTPCookieStorage.shared.cookies ?? []
        #expect(!shared.contains { $0.name == "fruit" })
    }

    private func cookies(of sessionManager: SessionManager, at httpbin: HTTPBin) async throws -> JSONValue {
        try await sessionManager.request("\(httpbin.url)/cookies").decodable()
    }

    @Test func `a background session is refused with an explanation`() async throws {
        let server = try ScriptedServer()
        let configuration = URLSessionConfiguration.default
        configuration.identifier = "com.example.app.background"
        let sessionManager = ClientCore.SessionManager(configuration: configuration)
        let error: Error? = await once { done in
            sessionManager.request(server.url).response { done($0.error) }
        }
        guard case .sessionConfigurationRefused(let property)? = error as? AFError else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(property.contains("identifier"))
        #expect(server.requests.isEmpty)
    }

    @Test func `returnCacheDataDontLoad never sends a request`() async throws {
        let server = try ScriptedServer()
        var urlRequest = try URLRequest(url: server.url, method: .get)
        urlRequest.cachePolicy = .returnCacheDataDontLoad
        let response = await once { ClientCore.request(urlRequest).response(completionHandler: $0) }
        #expect((response.error as? URLError)?.code == .resourceUnavailable)
        #expect("\(response.error as Any)".contains("there is none"), "the text contains the message")
        let configuration = URLSessionConfiguration.default
        configuration.requestCachePolicy = .returnCacheDataDontLoad
        let session = SessionManager(configuration: configuration)
        let refused = await once { session.request(server.url).response(completionHandler: $0) }
        guard case AFError.sessionConfigurationRefused? = refused.error else {
            Issue.record("\(String(describing: refused.error))")
            return
        }
        #expect(server.connectionCount == 0)
    }

    @Test func `the session's idle timeout ends a request to a silent server`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        let configuration = URLSessionConfiguration.default
        configuration.timeoutIntervalForRequest = 1
        let sessionManager = ClientCore.SessionManager(configuration: configuration)
        let error: Error? = await once { done in
            sessionManager.request(server.url).response { done($0.error) }
        }
        #expect((error as? URLError)?.code == .timedOut)
    }

    @Test func `the session's total timeout ends a request`() async throws {
        let server = try ScriptedServer { _ in .drippingBody }
        let configuration = URLSessionConfiguration.default
        configuration.timeoutIntervalForResource = 1
        let sessionManager = ClientCore.SessionManager(configuration: configuration)
        let error: Error? = await once { done in
            sessionManager.request(server.url).response { done($0.error) }
        }
        #expect((error as? URLError)?.code == .timedOut)
    }

    @Test func `releasing a session ends its requests with a named error`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        var sessionManager: SessionManager? = SessionManager()
        let errors = Recorder<Bool>()
        for _ in 0..<2 {
            sessionManager?.request(server.url).responseData { response in
                errors.record((response.error as? AFError)?.isSessionDeinitializedError == true)
            }
        }
        sessionManager = nil
        try await errors.wait { $0.count == 2 }
        #expect(errors.values == [true, true])
    }

    @Test func `a session can leave the start of requests to the program`() async throws {
        let server = try ScriptedServer { .respond($0.target) }
        let sessionManager = SessionManager()
        sessionManager.startRequestsImmediately = false
        let order = Recorder<String?>()
        let request = sessionManager.request("\(server.url)/held").responseString { response in
            order.record(response.result.value)
        }
        let other = sessionManager.request("\(server.url)/other").responseString { response in
            order.record(response.result.value)
        }
        other.resume()
        try await order.wait { $0.count == 1 }
        #expect(server.requests.map(\.target) == ["/other"])
        request.resume()
        try await order.wait { $0.count == 2 }
        #expect(order.values == ["/other", "/held"])
    }
}
