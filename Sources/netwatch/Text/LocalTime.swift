internal import Foundation

/// Formats times of day for people.
enum LocalTime {
    /// `14:03:49.202`
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
