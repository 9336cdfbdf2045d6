internal import FoundationEssentials
internal import NetwatchEventLoop
internal import OfflineQueue

/// HTML or SVG text. Interpolated text is escaped, also its characters that are not printable; interpolated HTML is not.
struct HTML: ExpressibleByStringInterpolation, Hashable, Sendable {
    private(set) var text: String

    init(stringLiteral value: String) { text = value }

    init(stringInterpolation: Interpolation) { text = stringInterpolation.text }

    init(joining parts: [HTML]) { text = parts.map(\.text).joined(separator: "\n") }

    struct Interpolation: StringInterpolationProtocol {
        fileprivate var text = ""

        init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity * 2) }

        mutating func appendLiteral(_ literal: String) { text += literal }

        mutating func appendInterpolation(_ value: String) {
            for character in value.printable.unicodeScalars {
                switch character {
                case "&": text += "&amp;"
                case "<": text += "&lt;"
                case ">": text += "&gt;"
                case "\"": text += "&quot;"
                case "'": text += "&#39;"
                default: text.unicodeScalars.append(character)
                }
            }
        }

        mutating func appendInterpolation(_ value: Int) { text += "\(value)" }

        mutating func appendInterpolation(_ html: HTML) { text += html.text }

        mutating func appendInterpolation(_ parts: [HTML]) { text += HTML(joining: parts).text }
    }
}

/// Texts for people.
package enum TextFormat {
    /// `12.4 ms`, `340 ms` or `2.1 s`.
    package static func latency(_ milliseconds: Double) -> String {
        if milliseconds >= 1000 { return "\(rounded(milliseconds / 1000, digits: 1)) s" }
        return "\(rounded(milliseconds, digits: milliseconds < 100 ? 1 : 0)) ms"
    }

    /// `99.95 %`, rounded down, so that 100 % means that there was no outage.
    package static func percentage(_ part: Double) -> String {
        if part >= 1 { return "100 %" }
        let hundredths = Int((part * 10_000).rounded(.down))
        return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100) %"
    }

    /// The two largest units: `3 d 4 h`, `5 min 20 s`, `0 s`.
    static func duration(milliseconds: Int64) -> String {
        let seconds = milliseconds / 1000
        let parts = [
            (seconds / 86_400, "d"), (seconds / 3600 % 24, "h"), (seconds / 60 % 60, "min"),
            (seconds % 60, "s"),
        ]
        let shown = parts.drop { $0.0 == 0 }.prefix(2).filter { $0.0 > 0 }
        return shown.isEmpty ? "0 s" : shown.map { "\($0.0) \($0.1)" }.joined(separator: " ")
    }

    /// `2026-11-24 13:05 UTC`
    static func time(_ date: Date) -> String {
        date.rfc3339.prefix(16).replacing("T", with: " ") + " UTC"
    }

    /// `1 host`, `3 hosts`
    static func count(_ number: Int, _ noun: String) -> String {
        "\(number) \(noun)\(number == 1 ? "" : "s")"
    }

    private static func rounded(_ value: Double, digits: Int) -> String {
        guard digits > 0 else { return "\(Int(value.rounded()))" }
        let tenths = Int((value * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }
}
