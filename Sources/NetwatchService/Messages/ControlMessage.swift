package import Foundation

/// The bodies of the control API. A client ignores members that it does not know; the service refuses them.
package enum ControlMessage {
    /// The version that every answer carries as `v`.
    package static let version = 1

    /// The longest body of a request that a message carries: 1 MiB. Longer ones come in pieces.
    package static let maximumBodyBytes = 1 << 20

    /// The longest piece of a body: 1 MiB.
    package static let maximumPieceBytes = 1 << 20

    /// How many ids one message may name.
    package static let mostIDs = 10_000

    /// How many requests one answer lists at most.
    package static let longestPage = 1000

    /// How many bytes of requests one answer lists at most, about: 1 MiB. It lists one request at least.
    package static let longestPageBytes = 1 << 20

    /// How long one answer may be waited for.
    package static let longestWait: Duration = .seconds(300)

    /// Names are in snake case, times RFC 3339 in UTC.
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

    package static var decoder: JSONDecoder {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            let text = try container.decode(String.self)
            guard let date = Date(rfc3339: text) else {
                throw DecodingError.dataCorruptedError(
                    in: container,
                    debugDescription: "it is not a time of RFC 3339, like 2026-01-31T12:34:56Z"
                )
            }
            return date
        }
        return decoder
    }
}

extension Date {
    private static let withFraction = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    private static let withoutFraction = Date.ISO8601FormatStyle()

    /// RFC 3339 in UTC with milliseconds: `2026-01-31T12:34:56.789Z`.
    package var rfc3339: String {
        formatted(Self.withFraction)
    }

    /// Reads RFC 3339, with a fraction of the second or without, in UTC or with an offset.
    package init?(rfc3339 text: String) {
        guard text.utf8.count <= 64,
            let date = (try? Self.withFraction.parse(text)) ?? (try? Self.withoutFraction.parse(text))
        else { return nil }
        self = date
    }
}
