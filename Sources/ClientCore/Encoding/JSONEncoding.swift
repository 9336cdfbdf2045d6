public import Foundation
public import FoundationNetworking

/// Encodes parameters as JSON (RFC 8259) in the body.
///
/// `nil` and `NSNull` become `null`. Arrays and dictionaries can be nested up to 512 levels. Unless `.sortedKeys` is
/// set, the order of names differs between runs.
public struct JSONEncoding: ParameterEncoding {
    /// JSON without line breaks and spaces.
    public static let `default` = JSONEncoding()
    /// JSON with line breaks and indentation.
    public static let prettyPrinted = JSONEncoding(options: .prettyPrinted)

    /// The options for writing the JSON.
    public let options: JSONSerialization.WritingOptions

    /// - Parameter options: The options for writing the JSON. Default: none, on one line.
    public init(options: JSONSerialization.WritingOptions = []) {
        self.options = options
    }

    /// Sets the body to the parameters as one JSON object.
    ///
    /// Sets `Content-Type: application/json` unless the request has a `Content-Type`.
    ///
    /// - Parameters:
    ///   - urlRequest: The request.
    ///   - parameters: The parameters; `nil` returns the request unchanged.
    /// - Throws: The error of `urlRequest`; ``AFError/ParameterEncodingFailureReason/jsonEncodingFailed(error:)``
    ///   with the underlying error ``InvalidJSONObject``, which names the value that JSON cannot represent.
    public func encode(
        _ urlRequest: any URLRequestConvertible,
        with parameters: Parameters?
    ) throws -> URLRequest {
        try encode(urlRequest, withJSONObject: parameters)
    }

    /// Sets the body to any JSON value.
    ///
    /// Sets `Content-Type: application/json` unless the request has a `Content-Type`.
    ///
    /// - Parameters:
    ///   - urlRequest: The request.
    ///   - jsonObject: An array or a dictionary, or any value if `.fragmentsAllowed` is set. Default `nil`, which
    ///     returns the request unchanged.
    /// - Throws: The errors of ``encode(_:with:)``.
    public func encode(
        _ urlRequest: any URLRequestConvertible,
        withJSONObject jsonObject: Any? = nil
    ) throws -> URLRequest {
        var urlRequest = try urlRequest.asURLRequest()
        guard let jsonObject else { return urlRequest }
        urlRequest.setBody(try data(jsonObject), contentType: "application/json")
        return urlRequest
    }

    private func data(_ jsonObject: Any) throws -> Data {
        do {
            return try JSONSerialization.data(withJSONObject: checked(jsonObject), options: options)
        } catch {
            throw AFError.parameterEncodingFailed(reason: .jsonEncodingFailed(error: error))
        }
    }

    /// Checks the value first: `JSONSerialization` terminates the program for a top-level fragment and writes the
    /// decimal NaN as `NaN`, and `isValidJSONObject` rejects strings and numbers that it can write.
    private func checked(_ jsonObject: Any) throws -> Any {
        var tree = ParameterTree(leaf: Self.leaf) { InvalidJSONObject(path: $0, value: $1) }
        let checked = try tree.rebuild(jsonObject)
        guard options.contains(.fragmentsAllowed) || checked is [Any] || checked is [String: Any] else {
            let value = ParameterTree.description(of: jsonObject)
            let description = "\(value) outside of an array or dictionary and without .fragmentsAllowed"
            throw InvalidJSONObject(path: [], value: description)
        }
        return checked
    }

    private static func leaf(_ value: ParameterValue) -> Any? {
        switch value {
        case .null: NSNull()
        case .text(let text): text
        case .bool(let bool): bool
        case .integer(let number): number
        case .decimal(let number): number == .notANumber ? nil : number
        case .real(let number): finite(number)
        case .array, .dictionary, .set, .other: nil
        }
    }

    /// Keeps a `Float`, because converting it to `Double` would add digits.
    private static func finite(_ number: some BinaryFloatingPoint) -> Any? {
        guard number.isFinite else { return nil }
        return number is Float ? number : Double(number)
    }
}
