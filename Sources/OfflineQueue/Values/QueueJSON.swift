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
            quoted(keys.map(\.stringValue.snakeCase).joined(separator: "."))
        }
        return switch error {
        case DecodingError.keyNotFound(let key, let context): "\(path(context.codingPath + [key])) is missing"
        case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context):
            "\(path(context.codingPath)) has the wrong type"
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
