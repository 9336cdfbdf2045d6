internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport

/// A long-running `ip -batch` process, so that a command does not need to start its own process.
///
/// Not safe for concurrent use. Each method blocks until `ip` has answered.
final class IPBatch {
    /// The result of one command.
    enum Answer {
        /// The command succeeded with this output. Most commands that change something have none.
        case done(String)
        /// The command failed with this error message of the kernel or of `ip`.
        case refused(String)
    }

    private let namespace: NetworkNamespace
    private let options: [String]
    private var conversation: Conversation?

    /// - Parameters:
    ///   - namespace: The network namespace in which `ip` runs.
    ///   - options: Further options of `ip`, in addition to `-json -force -batch -`. Only with `-json` does `ip` flush
    ///     its output after each command.
    init(in namespace: NetworkNamespace, options: String...) {
        self.namespace = namespace
        self.options = options
    }

    /// Runs commands and returns their results. Each command must print one line or fail.
    func ask(_ questions: [String]) throws -> [Answer] {
        try opened().exchange(questions)
    }

    /// Runs one command that prints nothing. Returns its error message, or `nil` on success.
    func perform(_ command: String) throws -> String? {
        defer { if command.hasPrefix("link del") || command.contains(" name ") { forget() } }
        guard let answers = try? opened().exchange([command]) else {
            // `ip` exits if it considers a command misspelled, for example because a device no longer exists.
            forget()
            return "ip exited"
        }
        if case .refused(let complaint) = answers[0] { return complaint }
        return nil
    }

    /// Ends the process. The next command starts a new one. This is necessary when interfaces change, because a running
    /// `ip` caches their names and indices forever.
    func forget() {
        conversation = nil
    }

    private func opened() throws -> Conversation {
        if let conversation { return conversation }
        let result = try Conversation(in: namespace, options: options)
        conversation = result
        return result
    }
}

/// One `ip` process and the socket for its standard input, output and error.
private final class Conversation {
    /// A command that always fails, sent after each group of commands. Its error message contains the number of the
    /// command and so marks the end of the group's output.
    private static let mark = "link show dev no-such-device"

    private let socket: FileDescriptor
    private let pid: pid_t
    private var commandsSent = 0
    private var unread: [UInt8] = []

    init(in namespace: NetworkNamespace, options: [String]) throws {
        var ends: [CInt] = [0, 0]
        // SOCK_CLOEXEC: if another process inherited the socket, `ip` would never read the end of its input.
        let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        try systemCall("socketpair") { socketpair(AF_UNIX, type, 0, &ends) }
        socket = FileDescriptor(owning: ends[0])
        let theirs = FileDescriptor(owning: ends[1])
        let descriptor = theirs.rawValue
        let arguments = ["ip", "-json", "-force"] + options + ["-batch", "-"]
        pid = try namespace.run { spawn(arguments, standardStreams: descriptor) }.get()
    }

    deinit {
        kill(pid, SIGKILL)
        while waitpid(pid, nil, 0) == -1, errno == EINTR {}
    }

    func exchange(_ commands: [String]) throws -> [IPBatch.Answer] {
        let first = commandsSent + 1
        commandsSent += commands.count + 1
        try send((commands + [Self.mark]).map { "\($0)\n" }.joined())
        var answers = [IPBatch.Answer](repeating: .done(""), count: commands.count)
        var position = 0
        var complaint: [String] = []
        while true {
            let line = try readLine()
            if let number = Self.failedCommand(line) {
                if number == commandsSent { return answers }
                answers[number - first] = .refused(complaint.joined(separator: "; "))
                position = number - first + 1
                complaint = []
            } else if line.hasPrefix("[{") {
                answers[position] = .done(line)
                position += 1
            } else if !line.isEmpty {
                complaint.append(line)
            }
        }
    }

    private static func failedCommand(_ line: String) -> Int? {
        let words = "Command failed -:"
        return line.hasPrefix(words) ? Int(line.dropFirst(words.count)) : nil
    }

    private func send(_ text: String) throws {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let sent = try systemCall("send") {
                rest.withUnsafeBytes {
                    Glibc.send(socket.rawValue, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
                }
            }
            rest = rest.dropFirst(sent)
        }
    }

    private func readLine() throws -> String {
        while true {
            if let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                defer { unread.removeSubrange(...end) }
                return String(decoding: unread[..<end], as: UTF8.self)
            }
            var chunk = [UInt8](repeating: 0, count: 65536)
            let count = try systemCall("recv") { recv(socket.rawValue, &chunk, chunk.count, 0) }
            guard count > 0 else { throw SystemError(call: "ip", errno: EPIPE) }
            unread += chunk[..<count]
        }
    }
}

private func spawn(_ arguments: [String], standardStreams: CInt) -> Result<pid_t, SystemError> {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for stream in 0...2 { posix_spawn_file_actions_adddup2(&actions, standardStreams, CInt(stream)) }
    var pid: pid_t = 0
    let result = withCStrings(arguments) { argv in
        posix_spawnp(&pid, arguments[0], &actions, nil, argv, environ)
    }
    return result == 0 ? .success(pid) : .failure(SystemError(call: "posix_spawn ip", errno: result))
}
