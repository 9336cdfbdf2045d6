internal import Foundation
public import FoundationNetworking

/// The parameters of a request by name.
public typealias Parameters = [String: Any]

/// A way to put parameters into a request.
@preconcurrency public protocol ParameterEncoding: Sendable {
    /// Puts the parameters into the request.
    ///
    /// - Parameters:
    ///   - urlRequest: What to make the request of.
    ///   - parameters: The parameters; `nil` leaves the request as it is.
    /// - Returns: The request with its parameters.
    /// - Throws: What `urlRequest` throws, ``AFError/parameterEncodingFailed(reason:)``, or an error of the
    ///   encoding's own; it becomes the error of the request.
    func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest
}

extension URLRequest {
    /// Takes a body and says what it is, unless a `Content-Type` says so already.
    mutating func setBody(_ body: Data, contentType: String) {
        if value(forHTTPHeaderField: "Content-Type") == nil {
            setValue(contentType, forHTTPHeaderField: "Content-Type")
        }
        httpBody = body
    }
}
