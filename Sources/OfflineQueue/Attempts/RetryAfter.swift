internal import Glibc

/// `Retry-After` (RFC 9110 §10.2.3): seconds or a date.
package enum RetryAfter {
    /// The maximum time for which a server may close a lane.
    package static let longest: Duration = .seconds(24 * 3600)

    /// Returns the time to wait, from 0 to ``longest``; `nil` if the text has neither form.
    package static func parse(_ text: String, now: Timestamp) -> Duration? {
        let text = text.trimmingSpaces()
        if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            // A number with too many digits for `Int64` means the maximum.
            return min(longest, Int64(text).map { .seconds(min($0, 1 << 40)) } ?? longest)
        }
        guard let date = HTTPDate.parse(text) else { return nil }
        return min(longest, max(.zero, date - now))
    }
}

/// A parser for the three date forms of RFC 9110 §5.6.7.
enum HTTPDate {
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    static func parse(_ text: String) -> Timestamp? {
        let words = text.split { " ,-".contains($0) }.map(String.init)
        guard words.count >= 5 else { return nil }
        // "Sun Nov  6 08:49:37 1994", otherwise "Sun, 06 Nov 1994 08:49:37 GMT" or "Sunday, 06-Nov-94 …".
        let isAsctime = Int(words[1]) == nil
        let (day, month) = isAsctime ? (words[2], words[1]) : (words[1], words[2])
        let (time, year) = isAsctime ? (words[3], words[4]) : (words[4], words[3])
        guard isAsctime || words.last == "GMT" else { return nil }
        return moment(day: day, month: month, year: year, time: time)
    }

    private static func moment(day: String, month: String, year: String, time: String) -> Timestamp? {
        let clock = time.split(separator: ":").compactMap { CInt($0) }
        guard let day = CInt(day), let month = months.firstIndex(of: month), let year = fullYear(year),
            clock.count == 3, (1...31).contains(day), (0..<24).contains(clock[0]),
            (0..<60).contains(clock[1]), (0...60).contains(clock[2])
        else { return nil }
        var parts = tm()
        (parts.tm_mday, parts.tm_mon, parts.tm_year) = (day, CInt(month), year - 1900)
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (clock[0], clock[1], clock[2])
        return Timestamp(milliseconds: Int64(timegm(&parts)) * 1000)
    }

    /// Parses a year. Two digits (RFC 850) mean 1970 to 2069.
    private static func fullYear(_ text: String) -> CInt? {
        guard let year = CInt(text), (0...9999).contains(year) else { return nil }
        guard text.utf8.count == 2 else { return year >= 1900 ? year : nil }
        return year < 70 ? 2000 + year : 1900 + year
    }
}

extension String {
    func trimmingSpaces() -> String {
        let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        guard let first = firstIndex(where: { !isBlank($0) }), let last = lastIndex(where: { !isBlank($0) })
        else { return "" }
        return String(self[first...last])
    }
}
