internal import Foundation
internal import NetwatchEventLoop

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

/// Returns the first 80 characters of a value for a message, in backticks and with escapes.
func quoted(_ value: String) -> String {
    let scalars = value.unicodeScalars
    return "`\(String(scalars.prefix(80)).printable)\(scalars.count > 80 ? "…" : "")`"
}
