/// Quotes arguments for a POSIX shell (IEEE 1003.1, Shell Command Language §2.2.2).
package enum Shell {
    /// Returns the text as one word of a command. The text must not contain NUL.
    package static func quoted(_ text: String) -> String {
        guard text.isEmpty || !text.utf8.allSatisfy(isLetterOrDigit) else { return text }
        // Iterates over scalars, because the shell only sees bytes: for Swift, an apostrophe with a combining
        // accent is a different `Character`.
        var word = "'".unicodeScalars
        for scalar in text.unicodeScalars {
            if scalar == "'" { word += "'\\''".unicodeScalars } else { word.append(scalar) }
        }
        word.append("'")
        return String(word)
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: false
        }
    }
}
