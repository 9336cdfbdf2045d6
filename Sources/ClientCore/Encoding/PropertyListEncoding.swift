public import Foundation
public import FoundationNetworking

/// Parameters as a property list in the body.
///
/// Dates and data may be among them, and arrays and dictionaries may lie 512 levels deep in one another;
/// `nil`, `NSNull` and sets may not be. XML keeps no fractions of a second.
public struct PropertyListEncoding: ParameterEncoding {
    /// As XML.
    public static let `default` = PropertyListEncoding()
    /// As XML.
    public static let xml = PropertyListEncoding(format: .xml)
    /// In the binary format.
    public static let binary = PropertyListEncoding(format: .binary)

    /// How the property list is written.
    public let format: PropertyListSerialization.PropertyListFormat
    /// Options for the writer. There are none yet.
    public let options: PropertyListSerialization.WriteOptions

    /// - Parameters:
    ///   - format: How the property list is written: `.xml`, the default, or `.binary`. `.openStep` can
    ///     only be read.
    ///   - options: Options for the writer. Default 0; there are none yet.
    public init(
        format: PropertyListSerialization.PropertyListFormat = .xml,
        options: PropertyListSerialization.WriteOptions = 0
    ) {
        self.format = format
        self.options = options
    }

    /// Makes the parameters the body, as one dictionary.
    ///
    /// The request gets `Content-Type: application/x-plist`, unless it has one.
    ///
    /// - Parameters:
    ///   - urlRequest: What to make the request of.
    ///   - parameters: The parameters; `nil` leaves the request as it is.
    /// - Throws: What `urlRequest` throws;
    ///   ``AFError/ParameterEncodingFailureReason/propertyListEncodingFailed(error:)`` with
    ///   ``InvalidPropertyList`` underneath, which names the value that cannot be written.
    public func encode(
        _ urlRequest: any URLRequestConvertible,
        with parameters: Parameters?
    ) throws -> URLRequest {
        var urlRequest = try urlRequest.asURLRequest()
        guard let parameters else { return urlRequest }
        urlRequest.setBody(try data(parameters), contentType: "application/x-plist")
        return urlRequest
    }

    private func data(_ parameters: Parameters) throws -> Data {
        do {
            let checked = try checked(parameters)
            return try PropertyListSerialization.data(
                fromPropertyList: checked,
                format: format,
                options: options
            )
        } catch {
            throw AFError.parameterEncodingFailed(reason: .propertyListEncodingFailed(error: error))
        }
    }

    private func checked(_ parameters: Parameters) throws -> Any {
        // Asked to write the third format, Foundation ends the program.
        guard format == .xml || format == .binary else {
            throw InvalidPropertyList(path: [], value: "the format openStep, which can only be read,")
        }
        let isXML = format == .xml
        var tree = ParameterTree(
            leaf: { Self.leaf($0, isXML) },
            isKey: { !isXML || Self.isXMLText($0) },
            failure: { InvalidPropertyList(path: $0, value: $1) }
        )
        return try tree.rebuild(parameters)
    }

    private static func leaf(_ value: ParameterValue, _ isXML: Bool) -> Any? {
        switch value {
        case .text(let text): !isXML || isXMLText(text) ? text : nil
        case .bool(let bool): bool
        case .integer(let number): number
        case .decimal(let number): number == .notANumber ? nil : number
        case .real(let number): real(number)
        case .other(let data as Data): data
        case .other(let date as Date):
            ParameterValue.years.contains(date.timeIntervalSince1970) ? date : nil
        case .null, .array, .dictionary, .set, .other: nil
        }
    }

    private static func real(_ number: some BinaryFloatingPoint) -> Any {
        number is Float ? number : Double(number)
    }

    /// XML 1.0 §2.2 has no way to write these, not even as references.
    private static func isXMLText(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { scalar in
            switch scalar.value {
            case 0x09, 0x0a, 0x0d: true
            case 0..<0x20, 0xfffe, 0xffff: false
            default: true
            }
        }
    }
}

/// A value that a property list has no way to write, such as `nil`, or a dictionary whose keys are no texts.
public struct InvalidPropertyList: Error, Sendable, CustomStringConvertible {
    /// Where the value is, from the outside in: `"foo", "2"`.
    public let path: [String]
    /// What the value is.
    public let value: String

    /// `foo.2: nil cannot be in a property list`.
    public var description: String {
        (path.isEmpty ? "" : path.joined(separator: ".") + ": ") + "\(value) cannot be in a property list"
    }
}
