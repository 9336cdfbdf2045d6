internal import Glibc
internal import Logging
internal import NetwatchEventLoop

/// The journal of systemd, to which standard error is connected.
package final class Journal: Sendable {
    /// `nil` if standard error is no socket of the journal, or if no socket could be created.
    private let socket: JournalSocket?
    private let stream: JournalStream?

    /// - Parameters:
    ///   - socket: Receives the entries.
    ///   - stream: Receives the entries that the socket does not take, as lines.
    init(socket: JournalSocket?, stream: JournalStream?) {
        self.socket = socket
        self.stream = stream
    }

    /// The journal, if `JOURNAL_STREAM` has the device and the inode of standard error (`systemd.exec(5)`).
    package static func ofStandardError() -> Journal? {
        var status = stat()
        guard let stream = getenv("JOURNAL_STREAM"), fstat(STDERR_FILENO, &status) == 0,
            String(cString: stream) == "\(status.st_dev):\(status.st_ino)"
        else { return nil }
        // The journal connects a socket. Another kind of file takes only lines.
        let isSocket = status.st_mode & S_IFMT == S_IFSOCK
        return Journal(
            socket: isSocket ? try? JournalSocket() : nil,
            stream: isSocket ? JournalStream() : nil
        )
    }

    /// Logs an entry. Waits at most 100 ms.
    ///
    /// - Parameters:
    ///   - message: One line.
    ///   - fields: The values of the entry's fields.
    func log(_ level: Logger.Level, _ message: String, _ fields: [LogField: String]) {
        guard send(level, message, fields), let loss = stream?.takeLoss() else { return }
        send(.warning, loss)
    }

    /// Sends an entry, or writes its message to standard error.
    ///
    /// - Returns: Whether the socket has taken the entry.
    @discardableResult
    private func send(
        _ level: Logger.Level,
        _ message: String,
        _ fields: [LogField: String] = [:]
    ) -> Bool {
        do throws(SystemError) {
            if let socket {
                try socket.send(Self.entry(level, message, fields))
                return true
            }
        } catch {
            // journald does not run, or does not read.
        }
        write(level, message)
        return false
    }

    private static func entry(
        _ level: Logger.Level,
        _ message: String,
        _ fields: [LogField: String]
    ) -> JournalEntry {
        var entry = JournalEntry()
        entry.add("MESSAGE", message)
        entry.add("PRIORITY", "\(level.priority)")
        entry.add("SYSLOG_IDENTIFIER", "netwatch")
        for (field, value) in fields.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            entry.add(field.rawValue, value)
        }
        return entry
    }

    /// Writes the message to standard error, after its priority (`sd-daemon(3)`).
    private func write(_ level: Logger.Level, _ message: String) {
        let output = "<\(level.priority)>\(message)\n"
        if let stream { return stream.write(output) }
        // One call per entry, so that lines of different threads do not mix.
        _ = output.withCString { Glibc.write(STDERR_FILENO, $0, strlen($0)) }
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

/// An entry in the native protocol of the journal (https://systemd.io/JOURNAL_NATIVE_PROTOCOL).
struct JournalEntry: Hashable, Sendable {
    private(set) var bytes: [UInt8] = []

    /// Adds a field.
    ///
    /// - Parameters:
    ///   - name: Capital letters, digits and underscores; not an underscore first.
    ///   - value: Any text. With a line break, it is sent with its length instead of an end.
    mutating func add(_ name: String, _ value: String) {
        let value = Array(value.utf8), newline = UInt8(ascii: "\n")
        bytes += name.utf8
        if value.contains(newline) {
            bytes.append(newline)
            bytes += withUnsafeBytes(of: UInt64(value.count).littleEndian, Array.init)
        } else {
            bytes.append(UInt8(ascii: "="))
        }
        bytes += value
        bytes.append(newline)
    }
}
