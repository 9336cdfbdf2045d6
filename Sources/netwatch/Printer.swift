internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// Where output goes: data to standard output, messages to standard error.
enum Printer {
    /// Writes a line of data. A reader that has gone away ends the process as SIGPIPE would; anything
    /// else that cannot be written is.
    static func data(_ line: String) {
        bytes(Data((line + "\n").utf8))
    }

    /// Writes bytes of data as they are.
    static func bytes(_ bytes: Data) {
        if write(bytes, to: STDOUT_FILENO) { return }
        if errno == EPIPE { endAsWithoutReader() }
        error("could not write to standard output: \(errnoDescription(errno))")
        exit(ExitStatus.unknown.rawValue)
    }

    /// Ends the process when whoever reads standard output goes away, which a command that waits for the
    /// next line to print would otherwise not notice.
    static func exitWhenReaderLeaves() {
        var status = stat()
        guard fstat(STDOUT_FILENO, &status) == 0, status.st_mode & S_IFMT == S_IFIFO else { return }
        // Without a thread the command goes on until it is ended, as any other would.
        try? startDetachedThread(named: "nw-reader") {
            var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
            while poll(&output, 1, -1) == -1, errno == EINTR {}
            endAsWithoutReader()
        }
    }

    /// Ends the process as SIGPIPE would have: without a word, and with a status that is no answer.
    private static func endAsWithoutReader() -> Never {
        SignalWatch.endProcess(by: SIGPIPE)
    }

    /// Opens those of the three standard descriptors that the caller closed, so that none of ours gets its number:
    /// with `O_PATH`, so that reading and writing fail as with a closed one (`EBADF`).
    static func fillStandardDescriptors() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 {
            _ = open("/dev/null", __O_PATH)
        }
    }

    /// Writes one JSON object as a line of data.
    static func json(_ value: some Encodable, with encoder: JSONEncoder) {
        // Only a number that JSON cannot express fails to encode, and no output has one.
        data(String(decoding: (try? encoder.encode(value)) ?? Data(), as: UTF8.self))
    }

    /// Writes a line of text that may hold a name chosen by somebody else, such as an interface's, which
    /// must not be able to steer the terminal.
    static func line(_ text: String) {
        data(printable(text))
    }

    /// The text with a question mark for every control character.
    static func printable(_ text: some StringProtocol) -> String {
        guard text.unicodeScalars.contains(where: isControl) else { return String(text) }
        var result = String.UnicodeScalarView()
        result.append(contentsOf: text.unicodeScalars.map { isControl($0) ? "?" : $0 })
        return String(result)
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.generalCategory == .control
    }

    /// A value as messages have it: in backticks, printable, and cut when it is very long.
    static func quoted(_ value: some StringProtocol) -> String {
        "`\(printable(value.prefix(80)))\(value.count > 80 ? "…" : "")`"
    }

    static func error(_ message: String, hint: String? = nil) {
        _ = write("error: \(message)\n" + (hint.map { "\nhint: \($0)\n" } ?? ""), to: STDERR_FILENO)
    }

    static func warning(_ message: String) {
        _ = write("warning: \(message)\n", to: STDERR_FILENO)
    }

    static func note(_ message: String) {
        _ = write(message + "\n", to: STDERR_FILENO)
    }

    /// Writes to the terminal that standard output is, with sequences that move its cursor.
    static func terminal(_ text: String) {
        _ = write(text, to: STDOUT_FILENO)
    }

    private static func write(_ text: String, to descriptor: CInt) -> Bool {
        write(Data(text.utf8), to: descriptor)
    }

    private static func write(_ data: Data, to descriptor: CInt) -> Bool {
        var bytes = data
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return false }
            bytes = bytes.dropFirst(count)
        }
        return true
    }
}
