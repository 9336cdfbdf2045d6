internal import ArgumentParser
internal import Foundation
internal import NetwatchService
internal import OfflineQueue

/// The output format of data.
enum OutputFormat: String, ExpressibleByArgument, CaseIterable {
    case text
    case json
}

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

/// Formatting of counts for people.
enum CountText {
    /// Returns a count with its noun: `1 request`, `3 requests`.
    ///
    /// - Parameter plural: Default: the singular followed by `s`.
    static func format(_ count: Int, _ singular: String, plural: String? = nil) -> String {
        "\(count) \(count == 1 ? singular : plural ?? singular + "s")"
    }
}

extension QueueCounts {
    /// Returns the numbers of requests in states, such as `2 held`. States without requests are left out.
    ///
    /// - Parameter always: The states that are listed without requests as well. Default: none.
    func words(
        of states: [QueuedRequest.State] = QueuedRequest.State.allCases,
        always: Set<QueuedRequest.State> = []
    ) -> [String] {
        states.filter { self[$0] > 0 || always.contains($0) }.map { "\(self[$0]) \($0)" }
    }
}

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

extension Duration {
    /// Parses a command-line argument.
    static func argument(_ text: String) throws -> Duration {
        guard let duration = DurationText.parse(text) else {
            throw ValidationError("\(Printer.quoted(text)) is not \(DurationText.acceptedForms)")
        }
        return duration
    }

    /// Returns a function that parses a command-line argument and refuses a duration outside a range.
    ///
    /// - Parameter words: The range for messages, such as `1ms to 24h`.
    static func argument(
        in range: ClosedRange<Duration>,
        _ words: String
    ) -> @Sendable (String) throws -> Duration {
        { text in
            let duration = DurationText.parse(text)
            guard let duration, range.contains(duration) else {
                let accepted = duration == nil ? "\(DurationText.forms)," : "a duration"
                throw ValidationError("\(Printer.quoted(text)) is not \(accepted) from \(words)")
            }
            return duration
        }
    }

    /// The duration as a number of seconds, for machine-readable output.
    var seconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}

extension String {
    /// The path, relative to the working directory if it is not absolute. The service prints such paths to the users of
    /// other commands, who do not know its working directory.
    var absolutePath: String {
        if hasPrefix("/") { return self }
        return FileManager.default.currentDirectoryPath + "/"
            + (hasPrefix("./") ? String(dropFirst(2)) : self)
    }
}

extension String {
    /// Returns the text, or its beginning and a mark if it is longer than `width`.
    ///
    /// - Parameter mark: Default: an ellipsis.
    func shortened(to width: Int, with mark: String = "…") -> String {
        // `dropFirst` visits at most `width` characters, while `count` would visit all characters of a long text.
        dropFirst(width).isEmpty ? self : prefix(max(0, width - mark.count)) + mark
    }

    /// Returns the text, or its beginning and its end with an ellipsis between them if it is longer than `width`.
    ///
    /// - Parameter beginning: The length of the beginning. Default: half of the width.
    func shortenedInMiddle(to width: Int, beginning: Int? = nil) -> String {
        guard !dropFirst(width).isEmpty else { return self }
        let beginning = beginning ?? width / 2
        return "\(prefix(beginning))…\(suffix(max(0, width - beginning - 1)))"
    }

    /// Returns a URL without a scheme. If it is longer than `width`, returns the host and the end of the path with an
    /// ellipsis between them. At least a quarter of the width is left for the end.
    func shortenedURL(to width: Int) -> String {
        let host = prefix { $0 != "/" }.count
        return shortenedInMiddle(to: width, beginning: min(host + 1, width * 3 / 4))
    }

    /// The URL without its scheme.
    var withoutScheme: String {
        firstRange(of: "://").map { String(self[$0.upperBound...]) } ?? self
    }

    /// Returns the lines of the text if no line may be longer than `width`. The text is divided at spaces; lines after
    /// the first are indented. A longer word, such as a URL, is not divided.
    ///
    /// - Parameters:
    ///   - width: The maximum length; `nil` for no limit.
    ///   - indent: The number of spaces before each line but the first. The text is not divided before this column.
    func wrapped(to width: Int?, indent: Int) -> [String] {
        guard let width, !dropFirst(width).isEmpty, width > indent else { return [self] }
        let margin = String(repeating: " ", count: indent)
        let first = prefix(indent)
        var lines = [String(first)]
        for word in dropFirst(indent).split(separator: " ", omittingEmptySubsequences: false) {
            let isStart = lines[lines.count - 1].count <= indent
            if !isStart, lines[lines.count - 1].count + 1 + word.count > width {
                lines.append(margin + word)
            } else {
                lines[lines.count - 1] += (isStart ? "" : " ") + word
            }
        }
        return lines
    }

    /// Returns the text padded with spaces to a width. Longer text is returned unchanged.
    func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}
