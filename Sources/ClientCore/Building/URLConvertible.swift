public import Foundation
public import FoundationNetworking

/// Something that a URL can be made of.
@preconcurrency public protocol URLConvertible: Sendable {
    /// Makes the URL.
    ///
    /// - Throws: ``AFError/invalidURL(url:)``, or whatever a conforming type throws; it becomes the error
    ///   of the request.
    func asURL() throws -> URL
}

extension String: URLConvertible {
    /// Parses the text with `URL(string:)`, which percent-encodes what a URL may not contain.
    ///
    /// - Throws: ``AFError/invalidURL(url:)``, for the empty text among others.
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
    /// - Throws: ``AFError/invalidURL(url:)`` when they do not make a URL.
    public func asURL() throws -> URL {
        guard let url else { throw AFError.invalidURL(url: self) }
        return url
    }
}

/// Something that a request can be made of.
@preconcurrency public protocol URLRequestConvertible: Sendable {
    /// Makes the request.
    ///
    /// - Throws: Whatever the conforming type throws; it becomes the error of the request.
    func asURLRequest() throws -> URLRequest
}

extension URLRequestConvertible {
    /// The request, or `nil` when it cannot be made.
    public var urlRequest: URLRequest? { try? asURLRequest() }
}

extension URLRequest: URLRequestConvertible {
    /// Returns the request itself.
    public func asURLRequest() throws -> URLRequest { self }
}

extension URLRequest {
    /// Makes a request of its parts.
    ///
    /// - Parameters:
    ///   - url: The URL.
    ///   - method: The method.
    ///   - headers: Header fields. Default none. Of two names that differ only in case, the later one in
    ///     sorted order wins. What cannot be sent is refused when the request is sent.
    /// - Throws: What ``URLConvertible/asURL()`` throws.
    public init(url: any URLConvertible, method: HTTPMethod, headers: HTTPHeaders? = nil) throws {
        self.init(url: try url.asURL())
        // Foundation's own, which it takes time to set.
        if method != .get { httpMethod = method.rawValue }
        if let headers, !headers.isEmpty { setHeaders(headers) }
    }
}
