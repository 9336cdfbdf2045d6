internal import Glibc

/// The terminal on standard output.
enum Terminal {
    static var isAvailable: Bool { isatty(STDOUT_FILENO) == 1 }

    /// The number of columns of the window; `nil` without a terminal.
    static var window: Int? { isAvailable ? size.columns : nil }

    /// Whether a terminal can move its cursor, according to `TERM`.
    static var canMoveCursor: Bool {
        guard let name = getenv("TERM").map({ String(cString: $0) }) else { return false }
        return !name.isEmpty && name != "dumb"
    }

    /// The number of columns and rows; 80 by 24 if the terminal does not report them.
    static var size: (columns: Int, rows: Int) { Self.size(of: STDOUT_FILENO) }

    /// Returns the number of columns and rows of the terminal at a descriptor.
    static func size(of descriptor: CInt) -> (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 else { return (80, 24) }
        return (size.ws_col > 0 ? Int(size.ws_col) : 80, size.ws_row > 0 ? Int(size.ws_row) : 24)
    }

    // The control sequences of ECMA-48, and two of DEC for the visibility of the cursor.
    static let hideCursor = "\u{1B}[?25l"
    static let showCursor = "\u{1B}[?25h"
    static let clearToEnd = "\u{1B}[J"

    static func up(_ lines: Int) -> String {
        lines > 0 ? "\u{1B}[\(lines)A" : ""
    }
}
