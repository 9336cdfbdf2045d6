internal import NetwatchEventLoop

/// JSON on a terminal.
enum JSONText {
    /// Returns JSON with the same values, in which strings have an escape such as `\u202E` for each character that is not
    /// printable. JSON itself requires this only below U+0020 (RFC 8259 §7).
    static func printable(_ text: String) -> String {
        let isUnchanged = { (scalar: Unicode.Scalar) in scalar.isPrintable || isWhitespace(scalar) }
        if text.unicodeScalars.allSatisfy(isUnchanged) { return text }
        var result = ""
        for scalar in text.unicodeScalars {
            if isUnchanged(scalar) {
                result.unicodeScalars.append(scalar)
            } else {
                // Only strings can have such characters.
                result += scalar.utf16.map(escape).joined()
            }
        }
        return result
    }

    /// Whether the character is white space between the tokens, which is always escaped in strings.
    private static func isWhitespace(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "\n" || scalar == "\r" || scalar == "\t"
    }

    private static func escape(_ unit: UInt16) -> String {
        let digits = String(unit, radix: 16, uppercase: true)
        return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }
}
