internal import Glibc
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

/// Logs to standard error. If that is the journal of systemd, each line begins with its priority (`sd-daemon(3)`), and
/// has no time, because the journal adds it.
package struct ServiceLogHandler: LogHandler {
    private let threshold: LogThreshold
    private let isJournal: Bool
    private var stream: StreamLogHandler

    /// - Parameter isJournal: Whether standard error is the journal. Default: whether `JOURNAL_STREAM` names it.
    package init(label: String, threshold: LogThreshold, isJournal: Bool = Self.isStandardErrorJournal) {
        self.threshold = threshold
        self.isJournal = isJournal
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
        guard isJournal else { return stream.log(event: event) }
        let values = metadata.merging(event.metadata ?? [:]) { $1 }.sorted { $0.key < $1.key }
        let text = (["\(event.message)"] + values.map { "\($0.key)=\($0.value)" }).joined(separator: " ")
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let output = lines.map { "<\(event.level.priority)>\($0)\n" }.joined()
        // One call per event, so that lines of different threads do not mix.
        _ = output.withCString { write(STDERR_FILENO, $0, strlen($0)) }
    }

    /// Whether `JOURNAL_STREAM` has the device and the inode of standard error (`systemd.exec(5)`).
    package static var isStandardErrorJournal: Bool {
        var status = stat()
        guard let stream = getenv("JOURNAL_STREAM"), fstat(STDERR_FILENO, &status) == 0 else { return false }
        return String(cString: stream) == "\(status.st_dev):\(status.st_ino)"
    }
}

extension Logger.Level {
    /// The priority in `syslog(3)`.
    fileprivate var priority: Int {
        switch self {
        case .trace, .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        case .critical: 2
        }
    }
}
