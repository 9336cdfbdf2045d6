public import Foundation
public import FoundationNetworking

/// Parameters as JSON (RFC 8259) in the body.
///
/// `nil` and `NSNull` become `null`. Arrays and dictionaries may lie 512 levels deep in one another. Without
/// `.sortedKeys` among the options the order of names differs from run to run.
public struct JSONEncoding: ParameterEncoding {
    /// Without line breaks and spaces.
    public static let `default` = JSONEncoding()
    /// With line breaks and indentation.
    public static let prettyPrinted = JSONEncoding(options: .prettyPrinted)

    /// How the JSON is written.
    public let options: JSONSerialization.WritingOptions

    /// - Parameter options: How the JSON is written. Default: in one line.
    public init(options: JSONSerialization.WritingOptions = []) {
        self.options = options
    }

    /// Makes the parameters the body, as one object.
    ///
    /// The request gets `Content-Type: application/json`, unless it has one.
    ///
    /// - Parameters:
    ///   - urlRequest: What to make the request of.
    ///   - parameters: The parameters; `nil` leaves the request as it is.
    /// - Throws: What `urlRequest` throws;
    ///   ``AFError/ParameterEncodingFailureReason/jsonEncodingFailed(error:)`` with ``InvalidJSONObject``
    ///   underneath, which names the value that JSON cannot write.
    public func encode(
        _ urlRequest: any URLRequestConvertible,
        with parameters: Parameters?
    ) throws -> URLRequest {
        try encode(urlRequest, withJSONObject: parameters)
    }

    /// Makes any value of JSON the body.
    ///
    /// The request gets `Content-Type: application/json`, unless it has one.
    ///
    /// - Parameters:
    ///   - urlRequest: What to make the request of.
    ///   - jsonObject: An array or a dictionary, or with `.fragmentsAllowed` among the options any value.
    ///     Default `nil`, which leaves the request as it is.
    /// - Throws: As ``encode(_:with:)`` does.
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

    /// `JSONSerialization` ends the program for a lone value, and writes the decimal that is no number as
    /// `NaN`; `isValidJSONObject` refuses texts and numbers that it can write.
    private func checked(_ jsonObject: Any) throws -> Any {
        var tree = ParameterTree(leaf: Self.leaf) { InvalidJSONObject(path: $0, value: $1) }
        let checked = try tree.rebuild(jsonObject)
        guard options.contains(.fragmentsAllowed) || checked is [Any] || checked is [String: Any] else {
            let value = ParameterTree.description(of: jsonObject)
            let description = "\(value) outside of an array or dictionary, without .fragmentsAllowed,"
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

    /// A `Float` stays one: as a `Double` it would get digits that nobody wrote.
    private static func finite(_ number: some BinaryFloatingPoint) -> Any? {
        guard number.isFinite else { return nil }
        return number is Float ? number : Double(number)
    }
}
