internal import ArgumentParser
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

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

/// When text has colours.
enum ColorChoice: String, ExpressibleByArgument, CaseIterable {
    /// On a terminal, unless a variable says otherwise; see ``showsColors(onTerminal:_:)``.
    case auto
    case always, never

    /// The choice of the user of this process.
    static let current = Lock(ColorChoice.auto)
    private static let variables = ProcessInfo.processInfo.environment

    /// Returns whether text that is written to a descriptor has colours.
    static func showsColors(on descriptor: CInt) -> Bool {
        current.withLock { $0 }.showsColors(onTerminal: isatty(descriptor) == 1, variables)
    }

    /// Returns whether text has colours.
    ///
    /// Without a choice, `NO_COLOR` prevents colours (no-color.org), and `CLICOLOR_FORCE` enables them unless it is 0.
    /// Otherwise text on a terminal has colours, except if `TERM` says that the terminal has none.
    ///
    /// - Parameters:
    ///   - isTerminal: Whether the text is written to a terminal.
    ///   - variables: The environment.
    func showsColors(onTerminal isTerminal: Bool, _ variables: [String: String]) -> Bool {
        func isSet(_ name: String) -> Bool { variables[name]?.isEmpty == false }
        switch self {
        case .always: return true
        case .never: return false
        case .auto where isSet("NO_COLOR"): return false
        case .auto where isSet("CLICOLOR_FORCE") && variables["CLICOLOR_FORCE"] != "0": return true
        case .auto: return isTerminal && isSet("TERM") && variables["TERM"] != "dumb"
        }
    }
}

/// The option of the commands whose text has colours.
struct ColorOption: ParsableArguments {
    @Option(help: "When to use colours: auto (on a terminal, unless $NO_COLOR is set), always or never.")
    var color = ColorChoice.auto

    /// Sets the choice before the command runs, so that its messages follow it, too.
    func validate() {
        ColorChoice.current.withLock { $0 = color }
    }
}

/// A printable text, parts of which have a style on a terminal. The words alone say everything that the styles say.
struct StyledText {
    /// The meaning of a part.
    enum Style {
        case good, bad, attention, title, hint

        /// The parameters of the control sequence `SGR` (ECMA-48 §8.3.117).
        fileprivate var parameters: String {
            switch self {
            case .good: "32"
            case .bad: "31"
            case .attention: "33"
            case .title: "1"
            case .hint: "36"
            }
        }
    }

    private var parts: [(text: String, style: Style?)]

    /// - Parameter text: Its characters that are not printable are escaped here, because ``shortened(to:)`` counts what
    ///   is shown.
    init(_ text: String, _ style: Style? = nil) {
        parts = [(Printer.printable(text), style)]
    }

    /// Creates a text that is the state of a host or a request, or the result of a check.
    init(state: String) {
        switch state {
        case "reachable", "up", "delivered", "ok": self.init(state, .good)
        case "not reachable", "down", "dead", "problem": self.init(state, .bad)
        case "degraded", "unknown", "held", "warning": self.init(state, .attention)
        default: self.init(state)
        }
    }

    /// The text without styles.
    var plain: String { parts.map(\.text).joined() }

    static func + (text: StyledText, other: StyledText) -> StyledText {
        var sum = text
        sum.parts += other.parts
        return sum
    }

    /// Returns the text, or its beginning and an ellipsis if it is longer than `width`.
    func shortened(to width: Int) -> StyledText {
        guard !plain.dropFirst(width).isEmpty else { return self }
        var (room, beginning) = (max(0, width - 1), self)
        beginning.parts = parts.map { part in
            let text = String(part.text.prefix(room))
            room -= text.count
            return (text, part.style)
        }
        return beginning + StyledText("…")
    }

    /// Returns the text for output, with the control sequences of the styles if they are shown.
    func rendered(withStyles showsStyles: Bool) -> String {
        parts.map { text, style in
            guard showsStyles, let style, !text.isEmpty else { return text }
            return "\u{1B}[\(style.parameters)m\(text)\u{1B}[0m"
        }.joined()
    }
}
