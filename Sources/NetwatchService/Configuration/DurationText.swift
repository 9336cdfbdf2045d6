/// Parses and formats durations for people.
package enum DurationText {
    /// A description of the forms that ``parse(_:)`` accepts, for messages.
    package static let acceptedForms = "\(forms), at most `9999h`"

    package static let forms = "a duration like `500ms`, `5s`, `2m`, `1h30m` or `7d`"

    /// The maximum duration. Users who give a longer one practically mean "forever", and its deadline would not fit the
    /// kernel's timers.
    private static let longest = Duration.seconds(9999 * 3600)

    private static let units: [(name: String, length: Duration)] = [
        ("d", .seconds(86_400)), ("h", .seconds(3600)), ("m", .seconds(60)), ("s", .seconds(1)),
        ("ms", .milliseconds(1)),
    ]

    /// Parses whole numbers with units, such as `1h30m`. Larger units come first, and each unit occurs at most once.
    /// `0` needs no unit. Returns `nil` for other text and for more than ``longest``.
    package static func parse(_ text: String) -> Duration? {
        if text == "0" { return .zero }
        var rest = text[...]
        var sum = Duration.zero
        for unit in units {
            guard let number = take(unit.name, from: &rest) else { continue }
            // Nine digits do not overflow, even as days. Longer numbers are refused in every unit.
            guard number.count <= 9, let count = Int64(number) else { return nil }
            sum += unit.length * Int(count)
        }
        return rest.isEmpty && !text.isEmpty && sum <= longest ? sum : nil
    }

    /// Consumes digits that are followed by exactly this unit: the `m` of `5ms` is not minutes.
    private static func take(_ unit: String, from text: inout Substring) -> Substring? {
        let digits = text.prefix { ("0"..."9").contains($0) }
        let rest = text[digits.endIndex...]
        guard !digits.isEmpty, rest.prefix(while: \.isLetter) == unit else { return nil }
        text = rest.dropFirst(unit.count)
        return digits
    }

    /// Formats a duration as ``parse(_:)`` reads it: `1h30m`. Less than a millisecond is dropped.
    package static func exact(_ duration: Duration) -> String {
        var rest = duration
        var text = ""
        for unit in units where rest >= unit.length {
            let count = Int64(rest / unit.length)
            text += "\(count)\(unit.name)"
            rest -= unit.length * Int(count)
        }
        return text.isEmpty ? "0s" : text
    }

    /// Formats a duration for people: in tenths of a second below a minute, otherwise in its two largest units.
    package static func format(_ duration: Duration) -> String {
        // The duration is negative if it is an age and the clock was set back.
        let duration = max(duration, .zero)
        let seconds = duration.components.seconds
        switch seconds {
        case ..<60: return "\(tenths(duration)) s"
        case ..<3600: return "\(seconds / 60) min \(seconds % 60) s"
        case ..<86_400: return "\(seconds / 3600) h \(seconds / 60 % 60) min"
        default: return "\(seconds / 86_400) d \(seconds / 3600 % 24) h"
        }
    }

    private static func tenths(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        let tenths = seconds * 10 + attoseconds / 100_000_000_000_000_000
        return "\(tenths / 10).\(tenths % 10)"
    }
}

/// Parses and formats numbers of bytes in a configuration.
enum ByteSizeText {
    static let acceptedForms = "a size like `512`, `\"64 KiB\"`, `\"256 MiB\"`, `\"4 GiB\"` or `\"10 GB\"`"

    private static let units: [(name: String, bytes: Int64)] = [
        ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10),
        ("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000), ("B", 1),
    ]

    /// Parses a whole number with a unit, with or without a space before it.
    static func parse(_ text: String) -> Int64? {
        let digits = text.prefix { ("0"..."9").contains($0) }
        let name = text.dropFirst(digits.count).drop { $0 == " " }
        guard let number = Int64(digits), let unit = units.first(where: { $0.name == name }) else {
            return nil
        }
        let (bytes, isTooLarge) = number.multipliedReportingOverflow(by: unit.bytes)
        return isTooLarge ? nil : bytes
    }

    /// Formats a size in the largest unit of which it is a multiple, as ``parse(_:)`` reads it.
    static func exact(_ bytes: Int64) -> String {
        let unit = units.first { bytes >= $0.bytes && bytes % $0.bytes == 0 && $0.name.hasSuffix("iB") }
        return unit.map { "\(bytes / $0.bytes) \($0.name)" } ?? "\(bytes) B"
    }
}
