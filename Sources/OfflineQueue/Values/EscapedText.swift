/// Text in which a backslash makes the next character an ordinary one, so that it is not a separator.
struct EscapedText {
    private typealias Mark = (character: Character, isEscaped: Bool)

    private let marks: ArraySlice<Mark>

    private init(_ marks: ArraySlice<Mark>) { self.marks = marks }

    /// Parses a text; `nil` if it ends with a backslash that escapes nothing.
    init?(_ text: String) {
        var (marks, isEscaped) = ([Mark](), false)
        for character in text {
            if character == "\\", !isEscaped {
                isEscaped = true
            } else {
                marks.append((character, isEscaped))
                isEscaped = false
            }
        }
        if isEscaped { return nil }
        self.init(marks[...])
    }

    /// The text without the backslashes that escape.
    var text: String { String(marks.map(\.character)) }

    /// The text without the spaces around it. Escaped spaces are part of it.
    var trimmed: EscapedText {
        let isOuter = { (mark: Mark) in mark.character.isWhitespace && !mark.isEscaped }
        guard let last = marks.lastIndex(where: { !isOuter($0) }) else { return EscapedText([]) }
        return EscapedText(marks[...last].drop(while: isOuter))
    }

    /// Splits the text at each unescaped separator, at most `maximum` times. Empty parts are kept.
    func split(at separator: Character, maximum: Int = .max) -> [EscapedText] {
        marks.split(maxSplits: maximum, omittingEmptySubsequences: false) {
            $0.character == separator && !$0.isEscaped
        }.map(EscapedText.init)
    }

    /// Returns the text with a backslash before each of these characters, and before each backslash.
    static func escape(_ text: String, _ special: Set<Character>) -> String {
        text.map { special.contains($0) || $0 == "\\" ? "\\\($0)" : String($0) }.joined()
    }

    /// Returns the text with a backslash before each of these characters, each backslash and each outer space, so that
    /// ``trimmed`` keeps the spaces.
    static func escapeWhole(_ text: String, _ special: Set<Character>) -> String {
        let leading = text.prefix(while: \.isWhitespace)
        let rest = text[leading.endIndex...]
        let end = rest.lastIndex { !$0.isWhitespace }.map { rest.index(after: $0) } ?? rest.endIndex
        let spaces = { (part: Substring) in part.map { "\\\($0)" }.joined() }
        return spaces(leading) + escape(String(rest[..<end]), special) + spaces(rest[end...])
    }
}
