internal import Foundation
internal import NetwatchEventLoop
internal import NetworkReachability

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

extension Duration {
    /// The exact duration in English words, such as `367 days` or `1 minute, 30 seconds`.
    var words: String {
        // The formatter would print `0 nanoseconds`.
        guard self != .zero else { return "0 seconds" }
        let units: Set<UnitsFormatStyle.Unit> = [
            .days, .hours, .minutes, .seconds, .milliseconds, .microseconds, .nanoseconds,
        ]
        return formatted(.units(allowed: units, width: .wide).locale(Locale(identifier: "en_US_POSIX")))
    }
}

/// Returns the first 80 characters of a value for a message, in backticks and with escapes.
func quoted(_ value: String) -> String {
    let scalars = value.unicodeScalars
    return "`\(String(scalars.prefix(80)).printable)\(scalars.count > 80 ? "…" : "")`"
}

/// The characters of the hosts of URLs.
enum HostText {
    /// Returns whether a host contains only characters that a name or an address can contain.
    ///
    /// An international name must be written as `xn--…`. An IPv6 address contains colons, and may have a zone after `%`.
    static func isValid(_ host: String) -> Bool {
        host.unicodeScalars.allSatisfy { scalar in
            scalar.isASCII
                && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
                    || "-._:%".unicodeScalars.contains(scalar))
        }
    }

    /// Returns whether a host is neither a name nor a complete address, but a number or an address such as `127.1`.
    /// libcurl would send the request to an address that the caller may not have meant.
    static func isMistypedAddress(_ host: String) -> Bool {
        do throws(InvalidHost) {
            _ = try NetworkHost(validating: host)
            return false
        } catch {
            return error.reason == .mistypedAddress
        }
    }

    /// Creates the error for a text in a configuration that is not a host.
    static func refusal(of text: String) -> QueueError {
        let accepted = "accepted: a name or an address, without a scheme, a port or `*`"
        let advice = InternationalName.advice(for: text) ?? accepted
        return QueueError(.invalidConfiguration, "\(quoted(text)) is not a host; \(advice)")
    }
}
