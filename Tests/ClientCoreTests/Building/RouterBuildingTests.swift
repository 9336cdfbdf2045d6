internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import Testing

/// Routers as described in the guides, and the requests they create.
@Suite struct RouterBuildingTests {
    enum Search: URLRequestConvertible {
        case search(query: String, page: Int)

        private static let baseURLString = "https://example.com"
        private static let perPage = 50

        private var parameters: Parameters {
            switch self {
            case .search(let query, let page) where page > 0: ["q": query, "offset": Self.perPage * page]
            case .search(let query, _): ["q": query]
            }
        }

        func asURLRequest() throws -> URLRequest {
            let url = try Self.baseURLString.asURL()
            let urlRequest = URLRequest(url: url.appendingPathComponent("/search"))
            return try URLEncoding.default.encode(urlRequest, with: parameters)
        }
    }

    enum Users: URLRequestConvertible, @unchecked Sendable {
        // Parameters are not sendable, hence `@unchecked`. That is safe, because only one test reads them.
        case create(Parameters)
        case read(String)
        case update(String, Parameters)
        case destroy(String)

        var method: HTTPMethod {
            switch self {
            case .create: .post
            case .read: .get
            case .update: .put
            case .destroy: .delete
            }
        }

        var path: String {
            switch self {
            case .create: "/users"
            case .read(let name), .update(let name, _), .destroy(let name): "/users/\(name)"
            }
        }

        func asURLRequest() throws -> URLRequest {
            let url = try "https://example.com".asURL()
            var urlRequest = URLRequest(url: url.appendingPathComponent(path))
            urlRequest.httpMethod = method.rawValue
            switch self {
            case .create(let parameters), .update(_, let parameters):
                return try URLEncoding.default.encode(urlRequest, with: parameters)
            case .read, .destroy: return urlRequest
            }
        }
    }

    @Test func `a search is one URL with sorted parameters`() throws {
        let request = try Search.search(query: "foo bar", page: 1).asURLRequest()
        #expect(request.url?.absoluteString == "https://example.com/search?offset=50&q=foo%20bar")
        #expect(request.httpMethod == "GET")
        let first = Search.search(query: "foo bar", page: 0).urlRequest
        #expect(first?.url?.absoluteString == "https://example.com/search?q=foo%20bar")
    }

    @Test func `a resource is created, read, updated and deleted`() throws {
        let parameters: Parameters = ["name": "Mattt & Co", "age": 1]
        let created = try Users.create(parameters).asURLRequest()
        #expect(created.httpMethod == "POST")
        #expect(created.url?.absoluteString == "https://example.com/users")
        #expect(created.bodyText == "age=1&name=Mattt%20%26%20Co")
        let updated = try Users.update("mattt", parameters).asURLRequest()
        #expect(updated.httpMethod == "PUT")
        #expect(updated.url?.absoluteString == "https://example.com/users/mattt")
        #expect(updated.bodyText == created.bodyText)
        for (router, method) in [(Users.read("mattt"), "GET"), (.destroy("mattt"), "DELETE")] {
            let request = try router.asURLRequest()
            #expect(request.httpMethod == method)
            #expect(request.url?.absoluteString == "https://example.com/users/mattt")
            #expect(request.httpBody == nil)
        }
    }

    @Test func `an encoding can be called directly`() throws {
        let urlRequest = URLRequest(url: try #require(URL(string: "https://httpbin.org/get")))
        let parameters: Parameters = ["foo": "bar"]
        let encoded = try URLEncoding.queryString.encode(urlRequest, with: parameters)
        #expect(encoded.url?.absoluteString == "https://httpbin.org/get?foo=bar")
    }

    @Test func `a URL is created from strings, URLs, components and custom types`() throws {
        struct User: URLConvertible {
            let name: String
            func asURL() throws -> URL { try "https://example.com/users/\(name)/".asURL() }
        }
        let components = try #require(URLComponents(string: "https://example.com/users/mattt/"))
        let url = try components.asURL()
        let convertibles: [any URLConvertible] = [url.absoluteString, url, components, User(name: "mattt")]
        for convertible in convertibles {
            let request = try URLRequest(url: convertible, method: .get)
            #expect(request.url?.absoluteString == "https://example.com/users/mattt/")
        }
        #expect(throws: AFError.self) { try URLRequest(url: "", method: .get) }
    }
}
