internal import ClientCore

/// A line of a document whose value may be a string without its quotes, which is the usual cause of a fault in the
/// syntax. The messages of the parser are about the type for which it takes the value, such as a time.
struct UnquotedString {
    /// The maximum length of a line that a message quotes, in bytes.
    private static let longestLine = 200

    private let key: String
    private let value: String

    /// Returns `nil` if the line of a fault has another form: a value that begins with a quote or a bracket.
    init?(in document: [UInt8], at position: TOMLPosition) {
        let lines = document.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        guard position.line > 0, position.line <= lines.count else { return nil }
        let bytes = lines[Int(position.line) - 1]
        guard bytes.count <= Self.longestLine else { return nil }
        let line = String(decoding: bytes, as: UTF8.self)
        let parts = line.split(separator: "=", maxSplits: 1).map(Self.trimmed)
        guard parts.count == 2, let first = parts[1].first, !"'[{#".contains(first),
            !parts[1].contains("\"")
        else { return nil }
        key = parts[0]
        value = Self.trimmed(parts[1].prefix { $0 != "#" })
    }

    /// How to write the value, as the end of a sentence. The value may be a URL with a password.
    var hint: String {
        "a string needs quotes, like `\(key) = \(TOMLNode.Value.quoted(RedactedURL.text(ofUnchecked: value)))`"
    }

    private static func trimmed(_ text: Substring) -> String {
        let start = text.drop(while: \.isWhitespace)
        return String(start.reversed().drop(while: \.isWhitespace).reversed())
    }
}
