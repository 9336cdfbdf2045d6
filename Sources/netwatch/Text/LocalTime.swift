internal import Foundation

/// Formatting of times of day for people, in the local time zone.
enum LocalTime {
    /// Formats a time, for example as `14:03:49.202`.
    static func format(_ time: Date) -> String {
        clock.string(from: time)
    }

    private static let clock: DateFormatter = {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.dateFormat = "HH:mm:ss.SSS"
        return formatter
    }()
}
