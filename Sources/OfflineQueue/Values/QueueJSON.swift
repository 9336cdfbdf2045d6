package import Foundation

/// The JSON form of requests and of everything about them: in the control API, in the database and in exports.
package enum QueueJSON {
    /// An encoder with member names in snake case and RFC 3339 times in UTC.
    package static var encoder: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(date.rfc3339)
        }
        return encoder
    }

    /// A decoder for the output of ``encoder``. It also accepts times with an offset from UTC.
    package static var decoder: JSONDecoder {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            let text = try container.decode(String.self)
            guard let date = Date(rfc3339: text) else {
                throw DecodingError.dataCorruptedError(
                    in: container,
                    debugDescription:
                        "`\(text.prefix(80))` is not an RFC 3339 time such as 2026-01-31T12:34:56Z"
                )
            }
            return date
        }
        return decoder
    }

    /// Returns why a text could not be decoded, in the terms of JSON.
    static func reason(_ error: any Error) -> String {
        func path(_ keys: [any CodingKey]) -> String {
            quoted(
                keys.map { $0.intValue.map(String.init) ?? $0.stringValue.snakeCase }.joined(separator: ".")
            )
        }
        return switch error {
        case DecodingError.keyNotFound(let key, let context): "\(path(context.codingPath + [key])) is missing"
        case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context):
            "\(path(context.codingPath)) has the wrong type"
        case DecodingError.dataCorrupted(let context) where !context.codingPath.isEmpty:
            "\(path(context.codingPath)): \(context.debugDescription)"
        case let error as QueueError: error.message
        default: "invalid JSON"
        }
    }
}

extension String {
    /// The name of a property as in JSON: `ttl_seconds` for `ttlSeconds`.
    package var snakeCase: String {
        reduce(into: "") { $0 += $1.isUppercase ? "_\($1.lowercased())" : String($1) }
    }
}

extension Date {
    private static let withFraction = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    private static let withoutFraction = Date.ISO8601FormatStyle()

    /// The date in RFC 3339 format, in UTC with milliseconds: `2026-01-31T12:34:56.789Z`.
    package var rfc3339: String {
        // The style rounds down. A date cannot represent most milliseconds exactly, so 0.9 s would become 0.899.
        addingTimeInterval(0.0005).formatted(Self.withFraction)
    }

    /// Parses an RFC 3339 date, with or without fractional seconds, in UTC or with an offset. Returns `nil` for other
    /// text and for dates that do not exist.
    package init?(rfc3339 text: String) {
        guard text.utf8.count <= 64, Self.exists(text),
            let date = (try? Self.withFraction.parse(text)) ?? (try? Self.withoutFraction.parse(text))
        else { return nil }
        self = date
    }

    /// Returns whether the date and time exist. For February 31st or 25:00 Foundation returns a later date instead of
    /// an error.
    private static func exists(_ text: String) -> Bool {
        let fields = text.prefix(19).split { !$0.isNumber }.compactMap { Int($0) }
        guard fields.count == 6 else { return false }
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        let date = DateComponents(
            calendar: calendar,
            year: fields[0],
            month: fields[1],
            day: fields[2],
            hour: fields[3],
            minute: fields[4],
            second: fields[5]
        )
        return date.isValidDate
    }
}

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
