internal import NetwatchEventLoop

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
