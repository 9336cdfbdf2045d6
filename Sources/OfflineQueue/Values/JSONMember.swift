internal import Foundation

/// The path to a member of a JSON document. It is written as a JSON pointer (RFC 6901), such as `/data/0/id`, or as
/// names that are separated by dots, such as `data.0.id`.
struct JSONPath: Hashable, Sendable {
    let names: [String]

    /// Parses a path; `nil` if the text is neither form.
    init?(_ text: String) {
        guard text.hasPrefix("/") else {
            names = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
            if names.contains("") { return nil }
            return
        }
        let parts = text.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        let unescaped = parts.compactMap { Self.unescape(String($0)) }
        guard unescaped.count == parts.count else { return nil }
        names = unescaped
    }

    /// Replaces `~1` by `/` and `~0` by `~`; `nil` for any other use of `~` (RFC 6901 §3).
    private static func unescape(_ part: String) -> String? {
        let pieces = part.split(separator: "~", omittingEmptySubsequences: false)
        var text = String(pieces[0])
        for piece in pieces.dropFirst() {
            switch piece.first {
            case "0": text += "~" + piece.dropFirst()
            case "1": text += "/" + piece.dropFirst()
            default: return nil
            }
        }
        return text
    }
}

/// A member of a JSON document. Only the containers on the path to it are decoded, because documents may be large.
struct JSONMember: Decodable {
    /// A JSON value that is neither an object nor an array.
    enum Scalar: Hashable, Decodable {
        case string(String)
        case number(Decimal)
        case bool(Bool)
        case null

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if value.decodeNil() {
                self = .null
            } else if let flag = try? value.decode(Bool.self) {
                self = .bool(flag)
            } else if let text = try? value.decode(String.self) {
                self = .string(text)
            } else {
                self = .number(try value.decode(Decimal.self))
            }
        }

        /// Creates the value that a text stands for: a JSON number, `true`, `false`, `null` or a string in quotes. Any
        /// other text is a string.
        init(parsing text: String) {
            self = (try? JSONDecoder().decode(Scalar.self, from: Data(text.utf8))) ?? .string(text)
        }
    }

    /// Whether the document has the member.
    let exists: Bool
    /// The value of the member; `nil` if it is an object or an array, or if there is no such member.
    let value: Scalar?

    private static let path = CodingUserInfoKey(rawValue: "path")!

    /// Finds a member. Returns `nil` if the data is not a JSON document.
    static func find(_ path: JSONPath, in document: Data) -> JSONMember? {
        let decoder = JSONDecoder()
        decoder.userInfo[Self.path] = path.names
        return try? decoder.decode(JSONMember.self, from: document)
    }

    init(from decoder: any Decoder) throws {
        var found: (any Decoder)? = decoder
        for name in decoder.userInfo[Self.path] as? [String] ?? [] {
            found = found.flatMap { Self.step(to: name, in: $0) }
        }
        exists = found != nil
        value = found.flatMap { try? Scalar(from: $0) }
    }

    private static func step(to name: String, in decoder: any Decoder) -> (any Decoder)? {
        if let object = try? decoder.container(keyedBy: Key.self) {
            let key = Key(stringValue: name)
            return object.contains(key) ? try? object.superDecoder(forKey: key) : nil
        }
        guard var array = try? decoder.unkeyedContainer(), let index = index(name) else { return nil }
        while array.currentIndex < index, !array.isAtEnd, (try? array.superDecoder()) != nil {}
        return array.isAtEnd || array.currentIndex != index ? nil : try? array.superDecoder()
    }

    /// Parses an array index: digits without leading zeros (RFC 6901 §4).
    private static func index(_ name: String) -> Int? {
        Int(name).flatMap { $0 >= 0 && String($0) == name ? $0 : nil }
    }

    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}
