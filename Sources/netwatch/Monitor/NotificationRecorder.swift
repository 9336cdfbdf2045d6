internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchNetlink

/// Writes the notifications that a monitor receives to a recording.
final class NotificationRecorder: Sendable {
    private struct State: ~Copyable {
        var writer: NetlinkRecording.Writer
        var count = 0
    }

    private let path: ArgumentBytes
    private let state: Lock<State>

    /// Creates the file.
    ///
    /// - Throws: An error if the file cannot be created.
    init(_ path: ArgumentBytes, replacesExisting: Bool) throws(CommandError) {
        self.path = path
        do {
            let writer = try NetlinkRecording.Writer.creating(
                path.cString,
                replacesExisting: replacesExisting
            )
            state = Lock(State(writer: writer))
        } catch {
            throw Self.failure(path, error)
        }
    }

    /// Appends a record.
    ///
    /// - Throws: An error with the reason, and with the number of complete records as a hint.
    func add(_ record: NetlinkRecording.Record) throws(CommandError) {
        do {
            try state.withLock { state throws(SystemError) in
                try state.writer.add(record)
                state.count += 1
            }
        } catch {
            throw CommandError(
                .unknown,
                "could not write to `\(path)`: \(errnoDescription(error.errno))",
                hint: "the \(state.withLock { $0.count }) earlier records are complete and can be replayed"
            )
        }
    }

    private static func failure(_ path: ArgumentBytes, _ error: SystemError) -> CommandError {
        let prefix = "could not record to `\(path)`: "
        switch error.errno {
        case EEXIST: return CommandError(.usage, prefix + "the file exists", hint: "`--force` replaces it")
        case EINVAL: return CommandError(.usage, prefix + "it is not a regular file")
        default: return CommandError(.usage, prefix + errnoDescription(error.errno))
        }
    }
}
