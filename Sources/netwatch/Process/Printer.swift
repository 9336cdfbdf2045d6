internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// Writes data to standard output and messages to standard error.
enum Printer {
    /// Writes a line of data. If the reader has closed the pipe, the process ends as if by SIGPIPE. Any other write
    /// failure is reported, and the process exits with ``ExitStatus/unknown``.
    ///
    /// - Parameter hint: What to do if the line cannot be written.
    static func data(_ line: String, hint: String? = nil) {
        bytes(Data((line + "\n").utf8), hint: hint)
    }

    /// Writes bytes unchanged.
    static func bytes(_ bytes: Data, hint: String? = nil) {
        if write(bytes, to: STDOUT_FILENO) { return }
        if errno == EPIPE { endByBrokenPipe() }
        error("could not write to standard output: \(errnoDescription(errno))", hint: hint)
        exit(ExitStatus.unknown.rawValue)
    }

    /// Starts a thread that ends the process when the reader of standard output closes the pipe. A command that waits
    /// for its next line would otherwise not notice.
    static func exitWhenReaderExits() {
        var status = stat()
        guard fstat(STDOUT_FILENO, &status) == 0, status.st_mode & S_IFMT == S_IFIFO else { return }
        // If no thread can be started, the command notices the closed pipe at its next write.
        try? startDetachedThread(named: "nw-reader") {
            var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
            while poll(&output, 1, -1) == -1, errno == EINTR {}
            endByBrokenPipe()
        }
    }

    /// Ends the process as SIGPIPE would: without a message, and not with one of the command's exit statuses.
    private static func endByBrokenPipe() -> Never {
        SignalWatch.endProcess(by: SIGPIPE)
    }

    /// Opens each of the three standard descriptors that the caller closed. Otherwise a file that this process opens
    /// could get one of these numbers. `O_PATH` makes reads and writes fail with `EBADF`, as on a closed descriptor.
    static func fillStandardDescriptors() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 {
            _ = open("/dev/null", __O_PATH)
        }
    }

    /// Writes a JSON object as a line of data.
    static func json(_ value: some Encodable, with encoder: JSONEncoder) {
        // Encoding fails only for numbers that JSON cannot express, which no output contains.
        json((try? encoder.encode(value)) ?? Data())
    }

    /// Writes a JSON text as a line of data.
    static func json(_ text: Data) {
        bytes(JSONText.printable(text) + Data("\n".utf8))
    }

    /// Writes a line of printable text. Other users and servers choose some of the names in it, and must not be able to
    /// control the terminal.
    static func line(_ text: String) {
        line(StyledText(text))
    }

    /// Writes a line of printable text with its styles.
    static func line(_ text: StyledText) {
        data(text.rendered(withStyles: ColorChoice.showsColors(on: STDOUT_FILENO)))
    }

    /// Writes lines that consist of a label and a text. On a terminal, a text that is wider than the window is continued
    /// on the next lines.
    ///
    /// - Parameter indent: The column in which the texts begin.
    static func rows(_ lines: [String], indent: Int) {
        let window = Terminal.window
        for line in lines.map(printable) {
            for part in line.wrapped(to: window, indent: indent) { data(part) }
        }
    }

    /// Returns the text on one line, with an escape for each character that is not printable. Parts of it can be
    /// arguments, as `ExactText`.
    static func printable(_ text: some StringProtocol) -> String {
        ArgumentBytes.printable(String(text)).printable
    }

    /// Returns a value for messages: in backticks, printable, and truncated to 80 characters.
    static func quoted(_ value: some StringProtocol) -> String {
        "`\(printable(value.prefix(80)))\(value.count > 80 ? "…" : "")`"
    }

    // Messages can have several lines. A caller makes text from outside printable if its line breaks must not end a line
    // of the message.

    static func error(_ message: String, hint: String? = nil) {
        let advice = hint.map { "\n\(label("hint:", .hint)) \(printableLines($0))\n" } ?? ""
        let text = "\(label("error:", .bad)) \(printableLines(message))\n"
        _ = write(text + advice, to: STDERR_FILENO)
    }

    static func warning(_ message: String) {
        _ = write("\(label("warning:", .attention)) \(printableLines(message))\n", to: STDERR_FILENO)
    }

    static func note(_ message: String) {
        _ = write(printableLines(message) + "\n", to: STDERR_FILENO)
    }

    private static func printableLines(_ message: String) -> String {
        let lines = message.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.map { printable($0) }.joined(separator: "\n")
    }

    private static func label(_ text: String, _ style: StyledText.Style) -> String {
        StyledText(text, style).rendered(withStyles: ColorChoice.showsColors(on: STDERR_FILENO))
    }

    /// Writes text with cursor control sequences to a terminal.
    static func terminal(_ text: String, on descriptor: CInt = STDOUT_FILENO) {
        _ = write(text, to: descriptor)
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

/// JSON on a terminal.
enum JSONText {
    /// Returns JSON with the same values, in which strings have an escape such as `\u202E` for each character that is not
    /// printable. JSON itself requires this only below U+0020 (RFC 8259 §7).
    static func printable(_ json: Data) -> Data {
        // This is much faster for an export, whose bodies are ASCII.
        if json.withUnsafeBytes({ $0.allSatisfy { $0 < 0x7f && isUnchanged(Unicode.Scalar($0)) } }) {
            return json
        }
        var result = ""
        for scalar in String(decoding: json, as: UTF8.self).unicodeScalars {
            if isUnchanged(scalar) {
                result.unicodeScalars.append(scalar)
            } else {
                // Only strings can have such characters.
                result += scalar.utf16.map(escape).joined()
            }
        }
        return Data(result.utf8)
    }

    /// Whether the character is printable, or white space between the tokens, which is always escaped in strings.
    private static func isUnchanged(_ scalar: Unicode.Scalar) -> Bool {
        scalar.isPrintable || scalar == "\n" || scalar == "\r" || scalar == "\t"
    }

    private static func escape(_ unit: UInt16) -> String {
        let digits = String(unit, radix: 16, uppercase: true)
        return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }
}

/// A line on the terminal of standard error, which is rewritten while a command waits.
struct StatusLine {
    /// Returns `nil` if standard error is not a terminal on which a line can be rewritten.
    init?() {
        guard isatty(STDERR_FILENO) == 1, Terminal.canMoveCursor else { return nil }
    }

    func show(_ text: String) {
        // The last column stays free, because some terminals wrap as soon as it is written.
        let width = max(1, Terminal.size(of: STDERR_FILENO).columns - 1)
        write(Printer.printable(text).shortened(to: width))
    }

    func clear() {
        write("")
    }

    private func write(_ text: String) {
        Printer.terminal("\r" + text + Terminal.clearToEnd + (text.isEmpty ? "" : "\r"), on: STDERR_FILENO)
    }
}
