public import Foundation
public import FoundationNetworking

/// Encodes parameters as JSON (RFC 8259) in the body.
///
/// `nil` and `NSNull` become `null`. Arrays and dictionaries can be nested up to 512 levels. The order of names
/// differs between runs, unless ``options`` contain `.sortedKeys`.
public struct JSONEncoding: ParameterEncoding {
    /// Encodes JSON without line breaks and spaces.
    public static let `default` = JSONEncoding()
    /// Encodes JSON with line breaks and indentation.
    public static let prettyPrinted = JSONEncoding(options: .prettyPrinted)

    /// The options for writing the JSON.
    public let options: JSONSerialization.WritingOptions

    /// Creates an encoding.
    ///
    /// - Parameter options: The options for writing the JSON. Default: none; the JSON is on one line.
    public init(options: JSONSerialization.WritingOptions = []) {
        self.options = options
    }

    /// Sets the body to the parameters as a JSON object.
    ///
    /// Also sets `Content-Type: application/json`, unless the request has a `Content-Type`.
    ///
    /// - Parameters:
    ///   - urlRequest: The request.
    ///   - parameters: The parameters; `nil` returns the request unchanged.
    /// - Throws: The error of `urlRequest`, or
    ///   ``AFError/ParameterEncodingFailureReason/jsonEncodingFailed(error:)``. Its underlying error is an
    ///   ``InvalidJSONObject`` with the value that JSON cannot represent.
    public func encode(
        _ urlRequest: any URLRequestConvertible,
        with parameters: Parameters?
    ) throws -> URLRequest {
        try encode(urlRequest, withJSONObject: parameters)
    }

    /// Sets the body to any JSON value.
    ///
    /// Also sets `Content-Type: application/json`, unless the request has a `Content-Type`.
    ///
    /// - Parameters:
    ///   - urlRequest: The request.
    ///   - jsonObject: An array or a dictionary. With `.fragmentsAllowed` in ``options``, any other JSON value is
    ///     accepted as well. Default: `nil`, the request is returned unchanged.
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

    /// Returns the value as types that `JSONSerialization` can write, or throws ``InvalidJSONObject``.
    ///
    /// Without this check, `JSONSerialization` terminates the program for a top-level string or number, and writes the
    /// decimal NaN as `NaN`. Its own check, `isValidJSONObject`, rejects strings and numbers that it can write.
    private func checked(_ jsonObject: Any) throws -> Any {
        var tree = ParameterTree(leaf: Self.leaf) { InvalidJSONObject(path: $0, value: $1) }
        let checked = try tree.rebuild(jsonObject)
        guard options.contains(.fragmentsAllowed) || checked is [Any] || checked is [String: Any] else {
            let value = ParameterTree.description(of: jsonObject)
            let description = "\(value) at the top level without .fragmentsAllowed"
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

    /// Returns the number if it is finite. A `Float` is not converted to `Double`, because that would add digits.
    private static func finite(_ number: some BinaryFloatingPoint) -> Any? {
        guard number.isFinite else { return nil }
        return number is Float ? number : Double(number)
    }
}
