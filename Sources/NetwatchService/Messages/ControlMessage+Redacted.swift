extension ControlMessage {
    /// What callers may read of a request that another user has submitted.
    package struct Redacted: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var id: String
        package var state: String
        package var host: String
        /// Always `true`. Distinguishes the message from one with all members.
        package var redacted = true
    }

    /// What `GET /v1/requests/{id}` returns of a request that another user has submitted.
    package struct RedactedDetails: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var request: Redacted
    }

    /// A message with all members, or with those that the caller may read.
    package enum Visible<Whole: Codable & Hashable & Sendable, Part: Codable & Hashable & Sendable>: Codable,
        Hashable, Sendable
    {
        case whole(Whole)
        case part(Part)

        package init(from decoder: any Decoder) throws {
            if let part = try? Part(from: decoder) {
                self = .part(part)
            } else {
                self = .whole(try Whole(from: decoder))
            }
        }

        package func encode(to encoder: any Encoder) throws {
            switch self {
            case .whole(let message): try message.encode(to: encoder)
            case .part(let message): try message.encode(to: encoder)
            }
        }

        /// The message with all members; `nil` if the caller may not read them.
        package var whole: Whole? {
            if case .whole(let message) = self { message } else { nil }
        }
    }

    /// A request in a list.
    package typealias Listed = Visible<Entry, Redacted>

    /// The response to `GET /v1/requests/{id}`.
    package typealias Shown = Visible<Details, RedactedDetails>
}
