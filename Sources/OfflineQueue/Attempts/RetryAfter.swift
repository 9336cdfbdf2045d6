internal import ClientCore

/// Parses the header field `Retry-After` (RFC 9110 §10.2.3), which contains a number of seconds or a date.
package enum RetryAfter {
    /// The maximum time for which a server can close a lane: 24 hours.
    package static let longest: Duration = .seconds(24 * 3600)

    /// Returns the time to wait, from 0 to ``longest``; `nil` if the value is neither a number nor a date.
    package static func parse(_ text: String, now: Timestamp) -> Duration? {
        let text = text.trimmingSpaces()
        if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            // A number that does not fit into `Int64` counts as the maximum.
            return min(longest, Int64(text).map { .seconds(min($0, 1 << 40)) } ?? longest)
        }
        guard let date = HTTPDate.seconds(text).map({ Timestamp(milliseconds: $0 * 1000) }) else {
            return nil
        }
        return min(longest, max(.zero, date - now))
    }
}

extension String {
    fileprivate func trimmingSpaces() -> String {
        let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        guard let first = firstIndex(where: { !isBlank($0) }), let last = lastIndex(where: { !isBlank($0) })
        else { return "" }
        return String(self[first...last])
    }
}
