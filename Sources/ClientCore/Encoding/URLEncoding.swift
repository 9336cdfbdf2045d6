internal import Foundation
public import FoundationNetworking
internal import NetwatchEventLoop

/// Encodes parameters as `name=value&name=value`, in the URL or in the body.
///
/// The same parameters always produce the same text, because names are sorted at every level. All characters except
/// ASCII letters, ASCII digits and `-._~/?` are percent-encoded as UTF-8. A space becomes `%20`.
///
/// | value | text |
/// |---|---|
/// | `true` | `1`, or `true` with ``BoolEncoding/literal`` |
/// | the numbers `1`, `1.0`, `0.1` | `1`, `1`, `0.1` |
/// | `Decimal` | all its digits |
/// | array | one pair per element; ``ArrayEncoding`` selects the names |
/// | set | like an array, sorted by the description of the elements |
/// | dictionary | `name[key]=value`. A key that is not a string is converted to its description |
/// | `nil`, `NSNull` | empty: `name=` |
/// | empty array, set or dictionary | no pair at all |
/// | other values | the description of the value |
public struct URLEncoding: ParameterEncoding {
    /// The part of the request that receives the parameters.
    public enum Destination: Sendable {
        /// The URL for `GET`, `HEAD` and `DELETE`, the body for other methods.
        case methodDependent
        /// The URL. The parameters are appended to its query.
        case queryString
        /// The body.
        case httpBody
    }

    /// The names of the elements of an array.
    public enum ArrayEncoding: Sendable {
        /// `name[]=1&name[]=2`.
        case brackets
        /// `name=1&name=2`.
        case noBrackets
        /// `name[0]=1&name[1]=2`.
        case indexInBrackets
    }

    /// The text for a `Bool`.
    public enum BoolEncoding: Sendable {
        /// `1` and `0`.
        case numeric
        /// `true` and `false`.
        case literal
    }

    /// Encodes in the URL or the body, depending on the method. Arrays have brackets, and Booleans are `1` and `0`.
    public static let `default` = URLEncoding()
    /// The same as ``default``.
    public static let methodDependent = URLEncoding()
    /// Encodes in the URL, for every method.
    public static let queryString = URLEncoding(destination: .queryString)
    /// Encodes in the body, for every method.
    public static let httpBody = URLEncoding(destination: .httpBody)

    /// The part of the request that receives the parameters.
    public let destination: Destination
    /// The names of the elements of an array.
    public let arrayEncoding: ArrayEncoding
    /// The text for a `Bool`.
    public let boolEncoding: BoolEncoding

    /// Creates an encoding.
    ///
    /// - Parameters:
    ///   - destination: The part of the request that receives the parameters. Default: the method decides.
    ///   - arrayEncoding: The names of the elements of an array. Default: `name[]`.
    ///   - boolEncoding: The text for a `Bool`. Default: `1` and `0`.
    public init(
        destination: Destination = .methodDependent,
        arrayEncoding: ArrayEncoding = .brackets,
        boolEncoding: BoolEncoding = .numeric
    ) {
        self.destination = destination
        self.arrayEncoding = arrayEncoding
        self.boolEncoding = boolEncoding
    }

    /// Appends the parameters to the URL's query, or replaces the body with them.
    ///
    /// If the parameters are in the body, this also sets
    /// `Content-Type: application/x-www-form-urlencoded; charset=utf-8`, unless the request has a `Content-Type`. The
    /// fragment of the URL is kept.
    ///
    /// - Parameters:
    ///   - urlRequest: The request.
    ///   - parameters: The parameters; `nil` returns the request unchanged.
    /// - Throws: The error of `urlRequest`;
    ///   ``AFError/ParameterEncodingFailureReason/missingURL`` if the parameters belong in the URL, but the request has
    ///   none; or ``AFError/ParameterEncodingFailureReason/customEncodingFailed(error:)`` with the underlying error
    ///   ``ParametersTooDeep``.
    public func encode(
        _ urlRequest: any URLRequestConvertible,
        with parameters: Parameters?
    ) throws -> URLRequest {
        var urlRequest = try urlRequest.asURLRequest()
        guard let parameters else { return urlRequest }
        guard encodesInURL(urlRequest.httpMethod ?? "GET") else {
            let contentType = "application/x-www-form-urlencoded; charset=utf-8"
            urlRequest.setBody(Data(try query(parameters).utf8), contentType: contentType)
            return urlRequest
        }
        guard let url = urlRequest.url else { throw AFError.parameterEncodingFailed(reason: .missingURL) }
        urlRequest.url = try url.appending(query: query(parameters))
        return urlRequest
    }

    private func encodesInURL(_ method: String) -> Bool {
        switch destination {
        case .methodDependent: ["GET", "HEAD", "DELETE"].contains(method)
        case .queryString: true
        case .httpBody: false
        }
    }
}

extension URL {
    /// Returns the URL with text appended to its query.
    ///
    /// `URLComponents` is not used, because the setter of `percentEncodedQuery` terminates the program for invalid
    /// text, and because a relative URL would lose its base.
    fileprivate func appending(query: String) throws -> URL {
        guard !query.isEmpty else { return self }
        let parts = absoluteString.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        let fragment = parts.count > 1 ? "#\(parts[1])" : ""
        let text = "\(parts[0])\(Self.separator(after: parts[0]))\(query)\(fragment)"
        guard let url = URL(string: text) else { throw AFError.invalidURL(url: text) }
        return url
    }

    private static func separator(after text: Substring) -> String {
        guard text.contains("?") else { return "?" }
        return text.hasSuffix("?") || text.hasSuffix("&") ? "" : "&"
    }
}

/// The error for a parameter whose arrays and dictionaries are nested more than 512 levels deep.
public struct ParametersTooDeep: Error, Sendable, CustomStringConvertible {
    /// The name of the parameter.
    public let name: String

    /// The name and the limit: `"foo" is nested more than 512 levels deep`.
    public var description: String {
        "\(name.printableLiteral) is nested more than \(ParameterTree.maximumDepth) levels deep"
    }
}

extension URLEncoding {
    /// Returns the percent-encoded names and values for a parameter.
    ///
    /// If a value is nested more than 512 levels deep, the result contains only the components before that value. For
    /// the same parameter, ``encode(_:with:)`` throws an error.
    ///
    /// - Parameters:
    ///   - key: The name of the parameter.
    ///   - value: The value of the parameter.
    /// - Returns: Pairs of a name and a value, in the order in which they are sent.
    public func queryComponents(fromKey key: String, value: Any) -> [(String, String)] {
        var components: [(String, String)] = []
        _ = append(value, named: key, depth: 0, to: &components)
        return components
    }

    /// Percent-encodes the text as UTF-8, except ASCII letters, ASCII digits and `-._~/?`.
    ///
    /// `/` and `?` are reserved characters, but RFC 3986 §3.4 allows them in a query, and servers expect them
    /// unencoded. All other reserved characters (§2.2) are encoded, because some would end a name or a value.
    public func escape(_ string: String) -> String {
        var escaped: [UInt8] = []
        escaped.reserveCapacity(string.utf8.count)
        for byte in string.utf8 {
            if Self.isPlain(byte) {
                escaped.append(byte)
            } else {
                escaped += [UInt8(ascii: "%"), Self.hexadecimal[Int(byte >> 4)]]
                escaped.append(Self.hexadecimal[Int(byte & 0xf)])
            }
        }
        return String(decoding: escaped, as: UTF8.self)
    }

    func query(_ parameters: Parameters) throws -> String {
        var components: [(String, String)] = []
        for (name, value) in parameters.sorted(by: { $0.key < $1.key }) {
            guard append(value, named: name, depth: 0, to: &components) else {
                let error = ParametersTooDeep(name: name)
                throw AFError.parameterEncodingFailed(reason: .customEncodingFailed(error: error))
            }
        }
        return components.map { "\($0)=\($1)" }.joined(separator: "&")
    }

    /// Appends the pairs for a value. Returns false if a value is nested too deeply; the pairs before it have then been
    /// appended.
    private func append(
        _ value: Any,
        named name: String,
        depth: Int,
        to components: inout [(String, String)]
    ) -> Bool {
        let parameter = ParameterValue(value)
        guard let children = children(of: parameter, named: name) else {
            components.append((escape(name), escape(text(of: parameter))))
            return true
        }
        guard depth < ParameterTree.maximumDepth else { return false }
        for (name, child) in children {
            guard append(child, named: name, depth: depth + 1, to: &components) else { return false }
        }
        return true
    }

    /// Returns the elements of an array, a set or a dictionary with their names; `nil` for other values.
    private func children(of value: ParameterValue, named name: String) -> [(name: String, value: Any)]? {
        switch value {
        case .array(let array): elements(array, of: name)
        case .set(let set):
            elements(set.map(\.base).sorted { text(ofKey: $0) < text(ofKey: $1) }, of: name)
        case .dictionary(let dictionary):
            dictionary.map { (key: text(ofKey: $0.key.base), value: $0.value) }
                .sorted { $0.key < $1.key }
                .map { ("\(name)[\($0.key)]", $0.value) }
        default: nil
        }
    }

    private func text(ofKey key: Any) -> String { ParameterValue.description(of: key) }

    private func elements(_ array: [Any], of name: String) -> [(name: String, value: Any)] {
        switch arrayEncoding {
        case .brackets: array.map { ("\(name)[]", $0) }
        case .noBrackets: array.map { (name, $0) }
        case .indexInBrackets: array.enumerated().map { ("\(name)[\($0.offset)]", $0.element) }
        }
    }

    private func text(of value: ParameterValue) -> String {
        switch value {
        case .null: ""
        case .text(let text): text
        case .bool(let bool): boolEncoding == .literal ? "\(bool)" : bool ? "1" : "0"
        case .integer(let number): number.stringValue
        case .decimal(let number): number.stringValue
        case .real(let number): Self.text(of: number)
        case .other(let value): ParameterValue.description(of: value)
        case .array, .dictionary, .set: ""
        }
    }

    /// Returns the shortest text that parses to the same number. A whole number has no `.0` at its end, as with
    /// `NSNumber` on Darwin.
    private static func text(of number: any BinaryFloatingPoint) -> String {
        let text = "\(number)"
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    private static let hexadecimal = Array("0123456789ABCDEF".utf8)

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: "-._~/?".utf8.contains(byte)
        }
    }
}
