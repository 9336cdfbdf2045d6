internal import Foundation

/// Formatting of numbers of bytes for people.
enum ByteText {
    private static let units = ["kB", "MB", "GB", "TB", "PB"]

    /// Formats a number of bytes in units with steps of 1000, with one decimal from 1 kB on.
    static func format(_ bytes: Int64) -> String {
        guard bytes >= 1000 else { return "\(bytes) B" }
        var (value, unit) = (Double(bytes) / 1000, 0)
        while value >= 999.95, unit < units.count - 1 { (value, unit) = (value / 1000, unit + 1) }
        return String(format: "%.1f %@", value, units[unit])
    }
}
