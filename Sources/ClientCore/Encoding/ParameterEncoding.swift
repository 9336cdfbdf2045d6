internal import Foundation
public import FoundationNetworking

/// The parameters of a request by name.
public typealias Parameters = [String: Any]

/// Encodes parameters into a request.
@preconcurrency public protocol ParameterEncoding: Sendable {
    /// Encodes the parameters into the request.
    ///
    /// - Parameters:
    ///   - urlRequest: The request.
    ///   - parameters: The parameters; `nil` returns the request unchanged.
    /// - Returns: The request with its parameters.
    /// - Throws: The error of `urlRequest`, ``AFError/parameterEncodingFailed(reason:)``, or another error of the
    ///   encoding; it becomes the error of the request.
    func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest
}

extension URLRequest {
    /// Sets the body, and its `Content-Type` unless the request has one.
    mutating func setBody(_ body: Data, contentType: String) {
        if value(forHTTPHeaderField: "Content-Type") == nil {
            setValue(contentType, forHTTPHeaderField: "Content-Type")
        }
        httpBody = body
    }
}
