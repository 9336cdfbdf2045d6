internal import Foundation

/// A time window that repeats every day, such as 22:00 to 06:00.
///
/// The times are local times of the zone. When daylight saving time begins or ends, the window follows the local time:
/// it is an hour shorter, longer or later. A window within the skipped hour does not open on that day, and one within
/// the repeated hour opens twice. On these two days, it may open and close up to 60 s late.
public struct DailyWindow: Hashable, Sendable {
    /// The minute of the day at which the window opens: 0 to 1439.
    public let start: Int
    /// The minute of the day at which the window closes: 0 to 1439, but not ``start``. A window whose end is before its
    /// start contains midnight.
    public let end: Int
    /// The identifier of the time zone, such as `Europe/Berlin`. Default `nil`: UTC.
    public let zone: String?

    /// A description of the text that ``init(parsing:)`` accepts, for error messages.
    public static let acceptedForm =
        "a window like `22:00-06:00` (UTC) or `22:00-06:00 Europe/Berlin`, with two different times from 00:00 to 23:59"

    /// Parses a text such as `22:00-06:00 Europe/Berlin`. Without a zone, the times are UTC.
    ///
    /// - Throws: ``QueueError`` with `invalidOption` and a message that quotes the text.
    public init(parsing text: String) throws(QueueError) {
        let parts = text.split(separator: " ", maxSplits: 1)
        let times = (parts.first ?? "").split(separator: "-", omittingEmptySubsequences: false)
        let zone = parts.count > 1 ? parts[1].trimmingCharacters(in: .whitespaces) : "UTC"
        guard times.count == 2, let start = Self.minute(times[0]), let end = Self.minute(times[1]),
            start != end
        else {
            throw QueueError(.invalidOption, "\(quoted(text)) is not \(Self.acceptedForm)")
        }
        guard zone == "UTC" || TimeZone(identifier: zone) != nil else {
            throw QueueError(
                .invalidOption,
                "\(quoted(zone)) is not a time zone of this machine; accepted: \(Self.acceptedForm)"
            )
        }
        (self.start, self.end, self.zone) = (start, end, zone == "UTC" ? nil : zone)
    }

    private static func minute(_ text: Substring) -> Int? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2,
            parts.allSatisfy({ $0.count == 2 && $0.allSatisfy { ("0"..."9").contains($0) } }),
            let hour = Int(parts[0]), let minute = Int(parts[1]), (0...23).contains(hour),
            (0...59).contains(minute)
        else { return nil }
        return hour * 60 + minute
    }
}

extension DailyWindow: CustomStringConvertible {
    /// The window as text, which ``init(parsing:)`` accepts.
    public var description: String {
        "\(Self.text(start))-\(Self.text(end))" + (zone.map { " \($0)" } ?? "")
    }

    private static func text(_ minute: Int) -> String {
        [minute / 60, minute % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":")
    }
}
