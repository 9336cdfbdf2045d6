public import Foundation
public import FoundationNetworking

extension String: URLConvertible {
    /// Returns the URL that `URL(string:)` parses from the text. Characters that a URL must not contain are
    /// percent-encoded.
    ///
    /// - Throws: ``AFError/invalidURL(url:)`` if the text is empty or cannot be parsed.
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
    /// Returns the URL that consists of the components.
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
    ///   - headers: Header fields. Default: none. If two names differ only in case, only the field whose name
    ///     sorts last is kept. Fields are not validated here: sending a request with an invalid field fails.
    /// - Throws: The errors of ``URLConvertible/asURL()``.
    public init(url: any URLConvertible, method: HTTPMethod, headers: HTTPHeaders? = nil) throws {
        self.init(url: try url.asURL())
        // GET is Foundation's default, so setting it would only take time.
        if method != .get { httpMethod = method.rawValue }
        if let headers, !headers.isEmpty { setHeaders(headers) }
    }
}
