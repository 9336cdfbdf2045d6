public import Foundation
public import FoundationNetworking

/// Encodes parameters as a property list in the body.
///
/// Dates and data can be encoded; `nil`, `NSNull` and sets cannot. Arrays and dictionaries can be nested up to 512
/// levels. The XML format drops fractions of a second from dates.
public struct PropertyListEncoding: ParameterEncoding {
    /// Encodes the XML format.
    public static let `default` = PropertyListEncoding()
    /// Encodes the XML format.
    public static let xml = PropertyListEncoding(format: .xml)
    /// Encodes the binary format.
    public static let binary = PropertyListEncoding(format: .binary)

    /// The format of the property list.
    public let format: PropertyListSerialization.PropertyListFormat
    /// Options for the writer. Foundation defines none.
    public let options: PropertyListSerialization.WriteOptions

    /// Creates an encoding.
    ///
    /// - Parameters:
    ///   - format: The format of the property list: `.xml` (the default) or `.binary`. Encoding with `.openStep` throws
    ///     an error, because Foundation can only read this format.
    ///   - options: Options for the writer. Default: 0. Foundation defines none.
    public init(
        format: PropertyListSerialization.PropertyListFormat = .xml,
        options: PropertyListSerialization.WriteOptions = 0
    ) {
        self.format = format
        self.options = options
    }

    /// Sets the body to a property list with the parameters as its dictionary.
    ///
    /// Also sets `Content-Type: application/x-plist`, unless the request has a `Content-Type`.
    ///
    /// - Parameters:
    ///   - urlRequest: The request.
    ///   - parameters: The parameters; `nil` returns the request unchanged.
    /// - Throws: The error of `urlRequest`, or
    ///   ``AFError/ParameterEncodingFailureReason/propertyListEncodingFailed(error:)``. Its underlying error is an
    ///   ``InvalidPropertyList`` with the value that a property list cannot represent.
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
        // Foundation terminates the program when it writes the openStep format.
        guard format == .xml || format == .binary else {
            let description = "`format` is openStep, which Foundation can only read: the parameters"
            throw InvalidPropertyList(path: [], value: description)
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

    /// Returns whether XML can represent the text. XML 1.0 §2.2 excludes some characters, even as references.
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

/// The error for a value that a property list cannot represent, such as `nil`, or a dictionary whose keys are not
/// strings.
public struct InvalidPropertyList: Error, Sendable, CustomStringConvertible {
    /// The keys and indexes that lead to the value, outermost first: `"foo", "2"`.
    public let path: [String]
    /// A description of the value.
    public let value: String

    /// The path and the value: `foo.2: nil cannot be in a property list`.
    public var description: String {
        (path.isEmpty ? "" : path.joined(separator: ".") + ": ") + "\(value) cannot be in a property list"
    }
}
