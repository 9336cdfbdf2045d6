internal import ClientCore
internal import NetworkReachability

/// Strings of refused values, which messages quote. Such a string may be a URL with a password in any form.
enum RefusedText {
    /// Returns a string with `REDACTED` in place of the secrets that it has as a URL.
    ///
    /// - Parameter isURL: Whether the key expects a URL. Text before an `@` is then always a secret. Default `false`: a
    ///   name such as `ops@example.com` is shown, unless there is a colon before its `@`.
    static func withoutSecrets(_ text: String, isURL: Bool = false) -> String {
        let bytes = text.utf8
        let name = bytes.lastIndex(of: UInt8(ascii: "@")).map { bytes[..<$0] }
        let mayBeURL = isURL || name?.contains(UInt8(ascii: ":")) == true
        return mayBeURL ? RedactedURL.text(ofUnchecked: text) : RedactedURL.text(of: text)
    }
}

extension TOMLNode.Value {
    /// Returns the value as TOML for a message that refuses it.
    ///
    /// - Parameter isURL: Whether the key expects a URL. Default `false`.
    func refusedText(isURL: Bool = false) -> String {
        text { RefusedText.withoutSecrets($0, isURL: isURL) }
    }

    /// How the first international name among the hosts of the value must be written; `nil` without such a name. Hosts are
    /// the keys of a table, and in an array the texts before `=`.
    var adviceOnHosts: String? {
        let names =
            switch self {
            case .table(let entries): entries.map(\.key)
            case .array(let nodes): nodes.compactMap(\.value.host)
            default: [String]()
            }
        return names.lazy.compactMap(InternationalName.advice).first
    }

    private var host: String? {
        guard case .string(let text) = self else { return nil }
        return text.firstIndex(of: "=").map { String(text[..<$0]) }
    }
}

/// Messages about keys that do not exist.
enum UnknownName {
    /// Returns a message that suggests the most similar accepted name, or else lists all of them.
    static func message(_ name: String, accepted: [String]) -> String {
        let shown = RefusedText.withoutSecrets(name)
        if let similar = NameSuggestion.name(for: name, among: accepted) {
            return "`\(shown)` is not a key; did you mean `\(similar)`?"
        }
        return "`\(shown)` is not a key; accepted: \(accepted.map { "`\($0)`" }.joined(separator: ", "))"
    }
}

/// Suggestions for names that do not exist.
package enum NameSuggestion {
    /// The minimum length of a word that suggests the names that begin with it.
    private static let shortestPrefix = 3

    /// Returns the shortest name that begins with the word, or else the most similar name; `nil` if none is similar.
    package static func name(for word: String, among names: [String]) -> String? {
        let longer = names.filter { word.count >= shortestPrefix && $0.hasPrefix(word) }
        if let name = longer.min(by: { $0.count < $1.count }) { return name }
        let nearest = names.min { distance(word, $0) < distance(word, $1) }
        return nearest.flatMap { isSimilar(word, to: $0) ? $0 : nil }
    }

    /// Returns whether the word may be a misspelling of the name: one edit for three letters of the name, but at least
    /// one.
    package static func isSimilar(_ word: String, to name: String) -> Bool {
        distance(word, name) <= max(1, name.count / 3)
    }

    /// Returns the Damerau–Levenshtein distance (optimal string alignment): the number of single-letter edits and swaps
    /// of adjacent letters.
    static func distance(_ left: String, _ right: String) -> Int {
        // A name in a file can be long, and the time grows with the product of both lengths.
        let left = Array(left.prefix(64)), right = Array(right.prefix(64))
        var rows = [Array(0...right.count)]
        for (i, letter) in left.enumerated() {
            var row = [i + 1]
            for (j, other) in right.enumerated() {
                var edits = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (letter == other ? 0 : 1))
                if i > 0, j > 0, letter == right[j - 1], left[i - 1] == other {
                    edits = min(edits, rows[i - 1][j - 1] + 1)
                }
                row.append(edits)
            }
            rows.append(row)
        }
        return rows[left.count][right.count]
    }
}

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
