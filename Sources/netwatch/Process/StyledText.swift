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
