import ClientCore
import Foundation
import FoundationNetworking
import Testing

/// The guides' router, as written for Alamofire 4.
enum Router: URLRequestConvertible {
    case search(query: String, page: Int)

    static let perPage = 50

    func asURLRequest() throws -> URLRequest {
        let result: (path: String, parameters: Parameters) = {
            switch self {
            case let .search(query, page) where page > 0:
                return ("/search", ["q": query, "offset": Router.perPage * page])
            case let .search(query, _):
                return ("/search", ["q": query])
            }
        }()
        let url = try "https://example.com".asURL()
        let urlRequest = URLRequest(url: url.appendingPathComponent(result.path))
        return try URLEncoding.default.encode(urlRequest, with: result.parameters)
    }
}

@Suite struct GuideRouterTests {
    @Test func `a router creates its requests`() throws {
        let url = try Router.search(query: "foo bar", page: 1).asURLRequest().url
        #expect(url?.absoluteString == "https://example.com/search?offset=50&q=foo%20bar")
    }
}
