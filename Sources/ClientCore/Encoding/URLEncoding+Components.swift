internal import Foundation
internal import NetwatchEventLoop

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
