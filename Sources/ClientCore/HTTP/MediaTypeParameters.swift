/// Parses the parameters of a media type in `Content-Type` or `Accept` (RFC 9110 §5.6.6).
enum MediaTypeParameters {
    /// Returns the value of the first parameter with this name; the case of the name is ignored. A quoted value is
    /// returned without its quotes and escapes.
    static func value(of name: String, in field: String) -> String? {
        for parameter in split(field, at: ";").dropFirst() {
            let parts = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, trimmed(parts[0]).lowercased() == name.lowercased() else { continue }
            return unquoted(trimmed(parts[1]))
        }
        return nil
    }

    /// Splits the text at each separator that is not inside quotes.
    static func split(_ field: String, at separator: Character) -> [String] {
        var parts = [""]
        var isQuoted = false
        var isEscaped = false
        for character in field {
            if character == separator, !isQuoted {
                parts.append("")
                continue
            }
            parts[parts.count - 1].append(character)
            if character == "\"", !isEscaped { isQuoted.toggle() }
            isEscaped = isQuoted && !isEscaped && character == "\\"
        }
        return parts
    }

    /// Returns the text without leading and trailing optional whitespace (RFC 9110 §5.6.3).
    static func trimmed(_ text: some StringProtocol) -> String {
        let isSpace = { (character: Character) in character == " " || character == "\t" }
        let start = text.drop(while: isSpace)
        return String(String(start).reversed().drop(while: isSpace).reversed())
    }

    private static func unquoted(_ value: String) -> String {
        guard value.count > 1, value.first == "\"", value.last == "\"" else { return value }
        var isEscaped = false
        return value.dropFirst().dropLast().filter { character in
            isEscaped = !isEscaped && character == "\\"
            return !isEscaped
        }
    }
}
