package import ClientCore
internal import NetwatchEventLoop

/// How the attempts of a request are made, what their responses mean, and whether the request leaves a record. These
/// options are stored as one text, because the store neither selects nor orders requests by them.
package struct AttemptSettings: Hashable, Sendable {
    /// The timeouts that the caller set, without extensions.
    package var timeouts = AttemptTimeouts()
    /// The version of HTTP; `nil` if the caller did not set one.
    package var httpVersion: HTTPVersion?
    /// The statuses after which the request is retried or given up.
    package var statusRules = StatusRules()
    /// Whether the queue keeps a record of the request when it has ended.
    package var isRecorded = true

    package init() {}
}

extension EnqueueOptions {
    package var attemptSettings: AttemptSettings {
        get {
            var settings = AttemptSettings()
            (settings.timeouts, settings.httpVersion) = (timeouts, httpVersion)
            (settings.statusRules, settings.isRecorded) = (statusRules, isRecorded)
            return settings
        }
        set {
            (timeouts, httpVersion) = (newValue.timeouts, newValue.httpVersion)
            (statusRules, isRecorded) = (newValue.statusRules, newValue.isRecorded)
        }
    }
}

// MARK: - Stored form

extension AttemptSettings {
    /// The stored form: the settings that differ from their defaults, durations in milliseconds. `nil` if there are
    /// none.
    ///
    /// An example is `response=600000,total=900000,http-version=1.1,retry=404+500-599`.
    package var stored: String? {
        let usual = AttemptTimeouts()
        var parts: [String] = []
        func add(_ name: String, _ timeout: Duration) {
            parts.append("\(name)=\(timeout.positiveMilliseconds)")
        }
        if timeouts.connect != usual.connect { add("connect", timeouts.connect) }
        if timeouts.response != usual.response { add("response", timeouts.response) }
        if let total = timeouts.total { add("total", total) }
        if let httpVersion { parts.append("http-version=\(httpVersion.rawValue)") }
        // A comma separates the settings.
        for (name, ranges) in [("retry", statusRules.retry), ("dead", statusRules.dead)] where !ranges.isEmpty
        {
            parts.append("\(name)=" + ranges.map(StatusRanges.text).joined(separator: "+"))
        }
        if !isRecorded { parts.append(Self.unrecorded) }
        return parts.isEmpty ? nil : parts.joined(separator: ",")
    }

    private static let unrecorded = "record=none"

    /// The SQL condition that a request leaves no record.
    static let isUnrecorded = "instr(timeouts, '\(unrecorded)') > 0"

    /// Creates settings from their ``stored`` form in the database.
    ///
    /// A part that cannot be read is ignored, so its setting has the default, and a timeout that is out of range is
    /// clamped. This happens only after a manual edit of the database.
    package init(stored text: String?) {
        self.init()
        for part in Self.parts(of: text) { try? read(part) }
        timeouts.connect = timeouts.connect.clamped(to: AttemptTimeouts.range)
        timeouts.response = timeouts.response.clamped(to: AttemptTimeouts.range)
        timeouts.total = timeouts.total?.clamped(to: AttemptTimeouts.range)
    }

    /// Creates settings from their ``stored`` form in an export. The range of the timeouts is not checked.
    ///
    /// - Throws: ``QueueError`` with `invalidOption` if a part cannot be read.
    package init(parsing text: String?) throws(QueueError) {
        self.init()
        for part in Self.parts(of: text) { try read(part) }
    }

    private static func parts(of text: String?) -> [Substring] { (text ?? "").split(separator: ",") }

    private mutating func read(_ part: Substring) throws(QueueError) {
        let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let value = pair.count == 2 ? String(pair[1]) : ""
        switch pair[0] {
        case "connect": timeouts.connect = try Self.timeout(value, in: part)
        case "response": timeouts.response = try Self.timeout(value, in: part)
        case "total": timeouts.total = try Self.timeout(value, in: part)
        case "http-version":
            guard let version = HTTPVersion(rawValue: value) else {
                let accepted = HTTPVersion.allCases.map(\.rawValue).joined(separator: " or ")
                throw QueueError(
                    .invalidOption,
                    "the HTTP version is \(quoted(value)); it must be \(accepted)"
                )
            }
            httpVersion = version
        case "record" where part == Self.unrecorded: isRecorded = false
        case "retry": statusRules.retry = try Self.statuses(value)
        case "dead": statusRules.dead = try Self.statuses(value)
        default:
            throw QueueError(
                .invalidOption,
                "the setting \(quoted(String(part))) of the attempts is unknown; accepted: `connect=`, `response=` and "
                    + "`total=` with milliseconds, `http-version=`, `retry=` and `dead=` with statuses, and "
                    + "`\(Self.unrecorded)`"
            )
        }
    }

    private static func statuses(_ value: String) throws(QueueError) -> [ClosedRange<Int>] {
        try StatusRanges.parse(value.replacing("+", with: ","))
    }

    private static func timeout(_ value: String, in part: Substring) throws(QueueError) -> Duration {
        guard let number = Int64(value) else {
            throw QueueError(
                .invalidOption,
                "the timeout \(quoted(String(part))) is not a number of milliseconds"
            )
        }
        return .milliseconds(number)
    }
}

extension Duration {
    /// The duration in whole milliseconds, rounded up so that a positive duration does not become 0.
    fileprivate var positiveMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    }
}
