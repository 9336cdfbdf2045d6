internal import Logging
internal import NetwatchTestSupport

/// A log handler that records the messages.
struct RecordingLogHandler: LogHandler {
    let messages: Recorder<String>
    var logLevel = Logger.Level.trace
    var metadata = Logger.Metadata()

    init(_ messages: Recorder<String>) {
        self.messages = messages
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { messages.record("\(event.message)") }
}

extension Logger {
    static func recording(_ messages: Recorder<String>) -> Logger {
        Logger(label: "test") { _ in RecordingLogHandler(messages) }
    }
}
