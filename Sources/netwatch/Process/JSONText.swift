internal import Foundation
internal import NetwatchEventLoop

/// JSON on a terminal.
enum JSONText {
    /// Returns JSON with the same values, in which strings have an escape such as `\u202E` for each character that is not
    /// printable. JSON itself requires this only below U+0020 (RFC 8259 §7).
    static func printable(_ json: Data) -> Data {
        // This is much faster for an export, whose bodies are ASCII.
        if json.withUnsafeBytes({ $0.allSatisfy { $0 < 0x7f && isUnchanged(Unicode.Scalar($0)) } }) {
            return json
        }
        var result = ""
        for scalar in String(decoding: json, as: UTF8.self).unicodeScalars {
            if isUnchanged(scalar) {
                result.unicodeScalars.append(scalar)
            } else {
                // Only strings can have such characters.
                result += scalar.utf16.map(escape).joined()
            }
        }
        return Data(result.utf8)
    }

    /// Whether the character is printable, or white space between the tokens, which is always escaped in strings.
    private static func isUnchanged(_ scalar: Unicode.Scalar) -> Bool {
        scalar.isPrintable || scalar == "\n" || scalar == "\r" || scalar == "\t"
    }

    private static func escape(_ unit: UInt16) -> String {
        let digits = String(unit, radix: 16, uppercase: true)
        return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }
}
