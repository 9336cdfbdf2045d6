internal import ClientCore
internal import Foundation
internal import FoundationNetworking

extension URLRequest {
    /// Creates a request from parts that may be invalid.
    init(_ url: String, _ method: String = "GET", _ headers: HTTPHeaders = [:], body: Data? = nil) {
        self.init(url: URL(string: url)!)
        httpMethod = method
        allHTTPHeaderFields = headers
        httpBody = body
    }
}
