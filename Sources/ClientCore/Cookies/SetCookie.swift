internal import Foundation

/// A `Set-Cookie` field, parsed as leniently as RFC 6265 §5.2 requires of clients. ``AcceptedCookie`` checks whether
/// the server is allowed to set the cookie.
///
/// Where draft-ietf-httpbis-rfc6265bis is stricter, the parser follows the draft. Comments call it 6265bis.
struct SetCookie: Equatable, Sendable {
    var name: String
    var value: String
    /// The expiry date; `nil` for a session cookie.
    var expires: Date?
    /// The value of `Domain`, lower-case and without a leading dot; `nil` if the attribute is missing or empty.
    var domain: String?
    /// The value of `Path`; `nil` if it is missing or does not begin with a slash. ``CookieScope/defaultPath(of:)``
    /// then applies.
    var path: String?
    var isSecure = false
    var isHTTPOnly = false

    /// The maximum length of name and value together, in bytes (6265bis §5.6).
    static let maximumBytes = 4096
    /// The maximum length of an attribute's value in bytes. Longer attributes are ignored (6265bis §5.6).
    static let maximumAttributeBytes = 1024
    /// The maximum lifetime in seconds: 400 days (6265bis §5.5).
    static let maximumAge: TimeInterval = 400 * 24 * 60 * 60

    /// Parses a field. Returns `nil` if it has no `=`, has no name, contains control characters, or is too long.
    ///
    /// 6265bis allows an empty name. This parser does not, because servers disagree about how to read a `Cookie` field
    /// with a nameless cookie.
    ///
    /// - Parameters:
    ///   - field: The value of a single `Set-Cookie` field. Several fields must not be joined with commas, because
    ///     dates contain commas (RFC 6265 §3).
    ///   - now: The time at which the field was received.
    init?(_ field: String, at now: Date) {
        guard !field.unicodeScalars.contains(where: Self.isControl) else { return nil }
        var parts = field.split(separator: ";", omittingEmptySubsequences: false).makeIterator()
        guard let pair = parts.next(), let equals = pair.firstIndex(of: "=") else { return nil }
        name = Self.trimmed(pair[..<equals])
        value = Self.trimmed(pair[equals...].dropFirst())
        guard !name.isEmpty, name.utf8.count + value.utf8.count <= Self.maximumBytes else { return nil }
        var lifetime = Lifetime()
        while let part = parts.next() { read(attribute: part, &lifetime, now) }
        expires = lifetime.end
    }

    /// The two attributes for the lifetime. `Max-Age` overrides `Expires`, whichever comes first.
    private struct Lifetime {
        var maxAge: Date?
        var expires: Date?

        var end: Date? { maxAge ?? expires }
    }

    /// Reads an attribute. If a name occurs twice, the later attribute is used. Unknown attributes are ignored.
    private mutating func read(attribute: Substring, _ lifetime: inout Lifetime, _ now: Date) {
        let parts = attribute.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let text = parts.count == 2 ? Self.trimmed(parts[1]) : ""
        guard text.utf8.count <= Self.maximumAttributeBytes else { return }
        switch Self.trimmed(parts[0]).lowercased() {
        case "expires": lifetime.expires = Self.expires(text, at: now) ?? lifetime.expires
        case "max-age": lifetime.maxAge = Self.maxAge(text, at: now) ?? lifetime.maxAge
        case "domain": domain = Self.domain(text)
        case "path": path = text.hasPrefix("/") ? text : nil
        case "secure": isSecure = true
        case "httponly": isHTTPOnly = true
        default: break
        }
    }

    private static func expires(_ text: String, at now: Date) -> Date? {
        CookieDate(text).map { min($0.date, now.addingTimeInterval(maximumAge)) }
    }

    /// Returns the expiry date for a value of `Max-Age`; `nil` if the value is not a number. 0 and negative numbers
    /// expire the cookie immediately. The maximum is ``maximumAge``.
    private static func maxAge(_ text: String, at now: Date) -> Date? {
        let digits = text.hasPrefix("-") ? text.dropFirst() : text[...]
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        guard digits.startIndex == text.startIndex else { return .distantPast }
        let seconds = Int(digits) ?? .max
        return seconds == 0 ? .distantPast : now.addingTimeInterval(min(TimeInterval(seconds), maximumAge))
    }

    /// Parses the value of `Domain`. An empty value is ignored (RFC 6265 §5.2.3).
    private static func domain(_ text: String) -> String? {
        let name = text.hasPrefix(".") ? String(text.dropFirst()) : text
        return name.isEmpty ? nil : name.lowercased()
    }

    /// Whether the character is a control character. A tab is not: it counts as white space (6265bis §5.6).
    private static func isControl(_ character: Unicode.Scalar) -> Bool {
        (character.value < 0x20 && character != "\t") || character.value == 0x7f
    }

    private static func trimmed(_ text: some StringProtocol) -> String {
        text.trimmingCharacters(in: CharacterSet(charactersIn: " \t"))
    }
}

/// A date in a cookie, parsed as leniently as RFC 6265 §5.1.1 requires:
///
/// - The time, day, month and year may come in any order. If one of them occurs several times, the first is used.
/// - Other words are ignored, including time zones: every date is UTC.
struct CookieDate: Equatable, Sendable {
    let date: Date

    init?(_ text: String) {
        var parts = Parts()
        for token in text.utf8.split(whereSeparator: Self.isDelimiter) { parts.take(token) }
        guard let date = parts.date else { return nil }
        self.date = date
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2f, 0x3b...0x40, 0x5b...0x60, 0x7b...0x7e: true
        default: false
        }
    }
}

/// The parts of a date that have been found so far.
private struct Parts {
    typealias Token = String.UTF8View.SubSequence

    var time: (hour: Int, minute: Int, second: Int)?
    var day: Int?
    var month: Int?
    var year: Int?

    mutating func take(_ token: Token) {
        if time == nil, let time = Self.time(token) {
            self.time = time
        } else if day == nil, let day = Self.number(token, digits: 1...2) {
            self.day = day
        } else if month == nil, let month = Self.month(token) {
            self.month = month
        } else if year == nil, let year = Self.number(token, digits: 2...4) {
            self.year = Self.fullYear(year)
        }
    }

    /// The date; `nil` if a part is missing or out of range, for example for the 30th of February.
    var date: Date? {
        guard let time, let day, let month, let year, year >= 1601, (1...31).contains(day),
            time.hour <= 23, time.minute <= 59, time.second <= 59
        else { return nil }
        let parts = DateComponents(
            year: year,
            month: month,
            day: day,
            hour: time.hour,
            minute: time.minute,
            second: time.second
        )
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        // `Calendar` turns the 30th of February into a day in March.
        guard let date = calendar.date(from: parts), calendar.component(.day, from: date) == day
        else { return nil }
        return date
    }

    private static func time(_ token: Token) -> (Int, Int, Int)? {
        let fields = token.split(
            separator: UInt8(ascii: ":"),
            maxSplits: 2,
            omittingEmptySubsequences: false
        )
        guard fields.count == 3 else { return nil }
        let numbers = fields.enumerated().map { index, field in
            // Other characters may follow the digits only in the last field.
            index < 2 && !field.allSatisfy(isDigit) ? nil : number(field, digits: 1...2)
        }
        guard let hour = numbers[0], let minute = numbers[1], let second = numbers[2] else { return nil }
        return (hour, minute, second)
    }

    private static func month(_ token: Token) -> Int? {
        let names = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
        let name = String(decoding: token.prefix(3), as: UTF8.self).lowercased()
        return names.firstIndex(of: name).map { $0 + 1 }
    }

    /// Returns the number at the start of the token; `nil` if the count of its digits is not in `digits`.
    private static func number(_ token: Token, digits: ClosedRange<Int>) -> Int? {
        let number = token.prefix(while: isDigit)
        return digits.contains(number.count) ? Int(String(decoding: number, as: UTF8.self)) : nil
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    /// Returns the year for two digits: 70 to 99 mean 1970 to 1999, and 0 to 69 mean 2000 to 2069.
    private static func fullYear(_ year: Int) -> Int {
        switch year {
        case 70...99: year + 1900
        case 0...69: year + 2000
        default: year
        }
    }
}
