internal import Foundation
public import FoundationNetworking

/// The parameters of a request by name.
public typealias Parameters = [String: Any]

/// A way to encode parameters into a request, such as ``URLEncoding`` and ``JSONEncoding``.
@preconcurrency public protocol ParameterEncoding: Sendable {
    /// Encodes the parameters into the URL or the body of the request.
    ///
    /// - Parameters:
    ///   - urlRequest: The request.
    ///   - parameters: The parameters; `nil` returns the request unchanged.
    /// - Returns: The request with its parameters.
    /// - Throws: The error of `urlRequest`, ``AFError/parameterEncodingFailed(reason:)``, or any other error. The
    ///   request fails with this error.
    func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest
}

extension URLRequest {
    /// Sets the body. Also sets `Content-Type`, unless the request already has this field.
    mutating func setBody(_ body: Data, contentType: String) {
        if value(forHTTPHeaderField: "Content-Type") == nil {
            setValue(contentType, forHTTPHeaderField: "Content-Type")
        }
        httpBody = body
    }
}
