public import Foundation
public import FoundationNetworking

/// A type that can be converted to a URL.
@preconcurrency public protocol URLConvertible: Sendable {
    /// Returns the URL.
    ///
    /// - Throws: ``AFError/invalidURL(url:)``, or any other error of a conforming type. The error becomes the error of
    ///   the request.
    func asURL() throws -> URL
}

/// A type that can be converted to a `URLRequest`.
@preconcurrency public protocol URLRequestConvertible: Sendable {
    /// Returns the request.
    ///
    /// - Throws: Any error of the conforming type. The error becomes the error of the request.
    func asURLRequest() throws -> URLRequest
}

extension URLRequestConvertible {
    /// The request, or `nil` if creating it fails.
    public var urlRequest: URLRequest? { try? asURLRequest() }
}
