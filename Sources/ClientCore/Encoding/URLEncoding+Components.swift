internal import Foundation

/// Parameters in which arrays and dictionaries are nested more than 512 levels deep.
public struct ParametersTooDeep: Error, Sendable, CustomStringConvertible {
    /// The name of the parameter.
    public let name: String

    /// `"foo" is nested more than 512 levels deep`.
    public var description: String {
        "\(name.debugDescription) is nested more than \(ParameterTree.maximumDepth) levels deep"
    }
}

extension URLEncoding {
    /// Returns the percent-encoded pairs for a parameter.
    ///
    /// The pairs end at a value that is nested more than 512 levels deep; ``encode(_:with:)`` throws an error
    /// instead.
    ///
    /// - Parameters:
    ///   - key: The name of the parameter.
    ///   - value: The value of the parameter.
    /// - Returns: Names and values in the order in which they are sent.
    public func queryComponents(fromKey key: String, value: Any) -> [(String, String)] {
        var components: [(String, String)] = []
        _ = append(value, named: key, depth: 0, to: &components)
        return components
    }

    /// Percent-encodes the text as UTF-8, except ASCII letters, ASCII digits and `-._~/?`.
    ///
    /// RFC 3986 §3.4 allows `/` and `?` in a query, and servers expect them unencoded. Its other reserved characters
    /// (§2.2) would end a name or a value.
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

    /// Returns whether the value is within the maximum depth.
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

    /// Returns the children of a value; `nil` if the value is a single text.
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

    /// Returns the shortest text that parses to the same number, without the trailing `.0`, which Darwin's `NSNumber`
    /// also omits.
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
