internal import Logging

/// A field of a log entry in the journal, by which `journalctl` selects entries:
/// `journalctl NETWATCH_HOST=example.com`.
///
/// The raw value is the key of the metadata, and the name of the field. Lines of text do not contain the fields, because
/// the message has their values.
enum LogField: String, CaseIterable, Sendable {
    /// The host of a request or of a lane, or the name of a watched host.
    case host = "NETWATCH_HOST"
    case requestID = "NETWATCH_REQUEST_ID"
    /// The label of a lane.
    case lane = "NETWATCH_LANE"
    /// Why the event has happened, as a short word: `remote`, `auth`, `HTTP 429`.
    case cause = "NETWATCH_CAUSE"
}

extension Logger.Metadata {
    /// Creates the fields of an entry. A value that is `nil` or empty is left out.
    static func fields(_ values: [LogField: String?]) -> Logger.Metadata {
        values.reduce(into: [:]) { metadata, field in
            guard let value = field.value, !value.isEmpty else { return }
            metadata[field.key.rawValue] = .string(value)
        }
    }
}
