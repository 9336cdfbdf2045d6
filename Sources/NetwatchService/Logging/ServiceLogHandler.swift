package import Logging
internal import NetwatchEventLoop

/// The lowest level that is logged. A reload changes it for all loggers of the service.
package final class LogThreshold: Sendable {
    private let value: Lock<Logger.Level>

    package init(_ level: Logger.Level) { value = Lock(level) }

    package var level: Logger.Level {
        get { value.withLock { $0 } }
        set { value.withLock { $0 = newValue } }
    }
}

/// Logs to the journal of systemd if standard error is connected to it, otherwise lines to standard error. An entry of
/// the journal has a priority and ``LogField``s, and no time, because the journal adds it.
///
/// Messages and values contain texts of users and servers. All of them are made printable here, so that no text can end
/// a line, imitate another one or control the terminal of a reader.
package struct ServiceLogHandler: LogHandler {
    private let threshold: LogThreshold
    private let journal: Journal?
    private var stream: StreamLogHandler

    /// - Parameter journal: The journal; `nil` if standard error is not connected to it. Default: whether
    ///   `JOURNAL_STREAM` names standard error.
    package init(label: String, threshold: LogThreshold, journal: Journal? = Journal.ofStandardError()) {
        self.threshold = threshold
        self.journal = journal
        stream = .standardError(label: label)
        stream.logLevel = .trace
    }

    package var logLevel: Logger.Level {
        get { threshold.level }
        set { threshold.level = newValue }
    }

    package var metadata: Logger.Metadata {
        get { stream.metadata }
        set { stream.metadata = newValue }
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { stream[metadataKey: key] }
        set { stream[metadataKey: key] = newValue }
    }

    package func log(event: LogEvent) {
        guard let journal else { return stream.log(event: Self.line(event)) }
        var texts = ["\(event.message)"]
        var fields: [LogField: String] = [:]
        let values = metadata.merging(event.metadata ?? [:]) { $1 }
        for (key, value) in values.sorted(by: { $0.key < $1.key }) {
            if let field = LogField(rawValue: key) {
                fields[field] = "\(value)".printable
            } else {
                texts.append("\(key)=\(value)")
            }
        }
        journal.log(event.level, texts.joined(separator: " ").printable, fields)
    }

    /// Returns the event for a line of text.
    private static func line(_ event: LogEvent) -> LogEvent {
        var line = event
        let message = "\(event.message)".printable
        line.message = "\(message)"
        line.metadata = event.metadata?.filter { LogField(rawValue: $0.key) == nil }
            .mapValues { .string("\($0)".printable) }
        return line
    }
}

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
