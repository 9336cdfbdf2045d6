internal import Foundation

extension Duration {
    /// The exact duration in words, such as `367 days` or `1 minute, 30 seconds`. Always in English, like all messages.
    var words: String {
        // The formatter would print 0 of the smallest unit.
        guard self != .zero else { return "0 seconds" }
        let units: Set<UnitsFormatStyle.Unit> = [
            .days, .hours, .minutes, .seconds, .milliseconds, .microseconds, .nanoseconds,
        ]
        return formatted(.units(allowed: units, width: .wide).locale(Locale(identifier: "en_US_POSIX")))
    }
}

/// Returns a value for a message: between backticks, with control characters escaped, cut after 80 characters.
func quoted(_ value: String) -> String {
    let escaped = value.unicodeScalars.prefix(80).map {
        $0.properties.generalCategory == .control
            ? $0.escaped(asASCII: true) : String($0)
    }
    return "`\(escaped.joined())\(value.unicodeScalars.count > 80 ? "…" : "")`"
}
