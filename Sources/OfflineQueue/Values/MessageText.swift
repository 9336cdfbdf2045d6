internal import Foundation

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

/// Returns the first 80 characters of a value for a message, in backticks and with control characters escaped.
func quoted(_ value: String) -> String {
    let escaped = value.unicodeScalars.prefix(80).map {
        $0.properties.generalCategory == .control
            ? $0.escaped(asASCII: true) : String($0)
    }
    return "`\(escaped.joined())\(value.unicodeScalars.count > 80 ? "…" : "")`"
}
