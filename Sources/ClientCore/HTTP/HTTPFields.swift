internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

extension TransferHead {
    /// Returns the value of a field that must occur only once; `nil` if it is missing or has different values.
    func singleField(_ name: String) -> String? {
        let values = Set(fields.values(of: name))
        return values.count == 1 ? values.first : nil
    }

    /// Whether the body is encoded, for example compressed. Byte offsets in an encoded body are not offsets in the
    /// file.
    var isEncoded: Bool {
        fields.values(of: "content-encoding").contains { $0.lowercased() != "identity" }
    }
}

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

/// Parses HTTP dates (RFC 9110 §5.6.7).
package enum HTTPDate {
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    private static let pattern = Array("aaa, 00 aaa 0000 00:00:00 GMT".utf8)

    /// Returns the seconds since 1970 for a date; `nil` for any other text.
    ///
    /// Recipients must accept all three forms of a date. The weekday, white space and leading zeros are not checked.
    /// Before sending a received date again, check it with ``isSenderForm(_:)``.
    package static func seconds(_ text: String) -> Int64? {
        let words = text.split { " ,-".contains($0) }.map(String.init)
        guard words.count >= 5 else { return nil }
        // The form of asctime(3) is "Sun Nov  6 08:49:37 1994", with the month before the day. The other two are
        // "Sun, 06 Nov 1994 08:49:37 GMT" and "Sunday, 06-Nov-94 08:49:37 GMT".
        let isAsctime = Int(words[1]) == nil
        let (day, month) = isAsctime ? (words[2], words[1]) : (words[1], words[2])
        let (time, year) = isAsctime ? (words[3], words[4]) : (words[4], words[3])
        guard isAsctime || words.last == "GMT" else { return nil }
        return seconds(day: day, month: month, year: year, time: time)
    }

    private static func seconds(day: String, month: String, year: String, time: String) -> Int64? {
        let clock = time.split(separator: ":").compactMap { Int64($0) }
        guard let day = Int64(day), let month = months.firstIndex(of: month), let year = fullYear(year),
            clock.count == 3, (1...31).contains(day), (0..<24).contains(clock[0]),
            (0..<60).contains(clock[1]), (0...60).contains(clock[2])
        else { return nil }
        let days = days(year: year, month: Int64(month) + 1, day: day)
        return ((days * 24 + clock[0]) * 60 + clock[1]) * 60 + clock[2]
    }

    /// Parses a year. A year of two digits (RFC 850) is in 1970 to 2069.
    private static func fullYear(_ text: String) -> Int64? {
        guard let year = Int64(text), (0...9999).contains(year) else { return nil }
        guard text.utf8.count == 2 else { return year >= 1900 ? year : nil }
        return year < 70 ? 2000 + year : 1900 + year
    }

    /// Returns the days since 1970 in the Gregorian calendar. The calculation uses years that start in March, so that
    /// the leap day is the last day of a year.
    private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        let year = month <= 2 ? year - 1 : year
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        // 719,468 days lie between 0000-03-01 and 1970-01-01.
        return year * 365 + year / 4 - year / 100 + year / 400 + dayOfYear - 719_468
    }

    /// Returns whether the text has the form of a date that senders must use, as in `Sun, 06 Nov 1994 08:49:37 GMT`.
    static func isSenderForm(_ text: String) -> Bool {
        let bytes = text.utf8
        return bytes.count == pattern.count && zip(bytes, pattern).allSatisfy(isMatch)
    }

    private static func isMatch(_ byte: UInt8, _ expected: UInt8) -> Bool {
        switch expected {
        case UInt8(ascii: "0"): UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
        case UInt8(ascii: "a"): UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20
        default: byte == expected
        }
    }
}

extension HTTPURLResponse {
    /// Whether the status says that the response has no content: 204 or 205.
    var hasNoContent: Bool { Self.hasNoContent(statusCode) }

    /// Returns whether the status is 204 or 205 (RFC 9110 §15.3.5, §15.3.6).
    static func hasNoContent(_ status: Int) -> Bool { status == 204 || status == 205 }
}
