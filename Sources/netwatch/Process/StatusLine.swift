internal import Glibc

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
