public import Foundation
public import FoundationNetworking

extension String: URLConvertible {
    /// Parses the text with `URL(string:)`, which percent-encodes characters that a URL must not contain.
    ///
    /// - Throws: ``AFError/invalidURL(url:)``, also for empty text.
    public func asURL() throws -> URL {
        guard let url = URL(string: self) else { throw AFError.invalidURL(url: self) }
        return url
    }
}

extension URL: URLConvertible {
    /// Returns the URL itself.
    public func asURL() throws -> URL { self }
}

extension URLComponents: URLConvertible {
    /// Joins the components.
    ///
    /// - Throws: ``AFError/invalidURL(url:)`` if they do not form a URL.
    public func asURL() throws -> URL {
        guard let url else { throw AFError.invalidURL(url: self) }
        return url
    }
}

extension URLRequest: URLRequestConvertible {
    /// Returns the request itself.
    public func asURLRequest() throws -> URLRequest { self }
}

extension URLRequest {
    /// Creates a request.
    ///
    /// - Parameters:
    ///   - url: The URL.
    ///   - method: The method.
    ///   - headers: Header fields. Default: none. Of two names that differ only in case, the last in sorted
    ///     order wins. Invalid fields are refused when the request is sent.
    /// - Throws: The errors of ``URLConvertible/asURL()``.
    public init(url: any URLConvertible, method: HTTPMethod, headers: HTTPHeaders? = nil) throws {
        self.init(url: try url.asURL())
        // GET is Foundation's default, and setting it takes time.
        if method != .get { httpMethod = method.rawValue }
        if let headers, !headers.isEmpty { setHeaders(headers) }
    }
}
