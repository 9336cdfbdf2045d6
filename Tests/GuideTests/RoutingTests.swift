import ClientCore
import Foundation
import FoundationNetworking
import NetwatchTestSupport
import Testing

/// A model that creates its own URL.
private struct Article {
    let server: String
    let name: String
}

extension Article: URLConvertible {
    func asURL() throws -> URL {
        try "\(server)/anything/articles/\(name)/".asURL()
    }
}

/// A router in which each operation on an article is a request.
private enum ArticleRouter: URLRequestConvertible {
    case create(server: String, parameters: Parameters)
    case read(server: String, name: String)
    case update(server: String, name: String, parameters: Parameters)
    case destroy(server: String, name: String)

    var method: HTTPMethod {
        switch self {
        case .create: return .post
        case .read: return .get
        case .update: return .put
        case .destroy: return .delete
        }
    }

    var place: (server: String, path: String) {
        switch self {
        case .create(let server, _):
            return (server, "/anything/articles")
        case .read(let server, let name), .update(let server, let name, _), .destroy(let server, let name):
            return (server, "/anything/articles/\(name)")
        }
    }

    func asURLRequest() throws -> URLRequest {
        let url = try place.server.asURL()
        var urlRequest = URLRequest(url: url.appendingPathComponent(place.path))
        urlRequest.httpMethod = method.rawValue
        switch self {
        case .create(_, let parameters), .update(_, _, let parameters):
            urlRequest = try URLEncoding.default.encode(urlRequest, with: parameters)
        default:
            break
        }
        return urlRequest
    }
}

/// A router that counts how often it is called.
private final class CountingRouter: URLRequestConvertible {
    let url: String
    let calls = Recorder<Void>()

    init(url: String) { self.url = url }

    func asURLRequest() throws -> URLRequest {
        calls.record(())
        return try URLRequest(url: url, method: .get)
    }
}

/// Sends a new token with each attempt, and retries once.
private final class TokenHandler: RequestAdapter, RequestRetrier {
    private let adapted = Recorder<Void>()

    func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
        adapted.record(())
        var urlRequest = urlRequest
        urlRequest.setValue("Bearer \(adapted.values.count)", forHTTPHeaderField: "Authorization")
        return urlRequest
    }

    func should(
        _ manager: SessionManager,
        retry request: Request,
        with error: Error,
        completion: @escaping RequestRetryCompletion
    ) {
        completion(request.retryCount == 0, 0)
    }
}

private struct Unroutable: Error {}

private struct BrokenRouter: URLRequestConvertible {
    func asURLRequest() throws -> URLRequest { throw Unroutable() }
}

@Suite(.timeLimit(.minutes(5))) struct RoutingTests {
    @Test func `a URL can be a string, a URL or its components`() async throws {
        let httpbin = try await HTTPBin.shared()
        let urlString = "\(httpbin.url)/post"
        let url = try #require(URL(string: urlString))
        let urlComponents = try #require(URLComponents(url: url, resolvingAgainstBaseURL: true))
        for request in [
            ClientCore.request(urlString, method: .post),
            ClientCore.request(url, method: .post),
            ClientCore.request(urlComponents, method: .post),
        ] {
            #expect(try await request.echo.url == urlString)
        }
    }

    @Test func `a model can be a URL`() async throws {
        let httpbin = try await HTTPBin.shared()
        let article = Article(server: httpbin.url, name: "tea")
        let echo = try await ClientCore.request(article).echo
        #expect(echo.url == "\(httpbin.url)/anything/articles/tea/")
    }

    @Test func `the error names a value that is not a URL`() async throws {
        let error: Error? = await once { done in
            ClientCore.request("").response { done($0.error) }
        }
        #expect((error as? AFError)?.urlConvertible as? String == "")
        var components = URLComponents()
        components.host = "127.0.0.1"
        components.path = "no/slash"
        let other: Error? = await once { done in
            ClientCore.request(components).response { done($0.error) }
        }
        #expect((other as? AFError)?.urlConvertible as? URLComponents == components)
    }

    @Test func `a router creates, reads, updates and deletes`() async throws {
        let httpbin = try await HTTPBin.shared()
        let server = httpbin.url
        let create = try await ClientCore.request(
            ArticleRouter.create(server: server, parameters: ["name": "tea"])
        ).echo
        #expect(create.method == "POST")
        #expect(create.url == "\(server)/anything/articles")
        #expect(create.form == ["name": "tea"])
        let read = try await ClientCore.request(ArticleRouter.read(server: server, name: "tea")).echo
        #expect(read.method == "GET")
        #expect(read.url == "\(server)/anything/articles/tea")
        let update = try await ClientCore.request(
            ArticleRouter.update(server: server, name: "tea", parameters: ["price": 3])
        ).echo
        #expect(update.method == "PUT")
        #expect(update.form == ["price": "3"])
        let destroy = try await ClientCore.request(ArticleRouter.destroy(server: server, name: "tea")).echo
        #expect(destroy.method == "DELETE")
        #expect(destroy.url == "\(server)/anything/articles/tea")
    }

    @Test func `a retry calls the adapter again, but not the router`() async throws {
        let server = try ScriptedServer { request in
            .respond(status: request.number == 1 ? 500 : 200)
        }
        let sessionManager = SessionManager()
        let handler = TokenHandler()
        sessionManager.adapter = handler
        sessionManager.retrier = handler
        let router = CountingRouter(url: server.url)
        let response = await sessionManager.request(router).validate().response()
        #expect(response.error == nil)
        #expect(server.requests.map { $0.values(of: "Authorization") } == [["Bearer 1"], ["Bearer 2"]])
        #expect(router.calls.values.count == 1)
    }

    @Test func `an error thrown by a router is the request's error`() async throws {
        let error: Error? = await once { done in
            ClientCore.request(BrokenRouter()).responseString { done($0.result.error) }
        }
        #expect(error is Unroutable)
    }
}
