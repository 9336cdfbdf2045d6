internal import Foundation

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
