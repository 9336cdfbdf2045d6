internal import Foundation
internal import NetwatchService
internal import NetworkReachability

/// One line of output about a target, as JSON has it.
struct HostLine: Encodable {
    var v = ControlMessage.version
    /// `host`, or `path` for the general path in `netwatch monitor`.
    var type = "host"
    var time: Date
    var host: String
    var reachability: Reachability
    var connection: String?
    var reason: String?
    var interface: String?
    var source: String?
    var gateway: String?
    var isLocal: Bool?
    var pathGeneration: UInt64
    var previous: Reachability?
    var previousSeconds: Double?

    private var words: String

    private enum CodingKeys: String, CodingKey {
        case v, type, time, host, reachability, connection, reason, interface, source, gateway
        case isLocal = "local"
        case pathGeneration, previous, previousSeconds
    }

    init(_ status: PathStatus, time: Date) {
        self.time = time
        host = status.target.description
        reachability = status.reachability
        pathGeneration = status.pathGeneration
        words = status.words
        reason = status.reason?.rawValue
        guard let path = status.path else { return }
        connection = "ethernetOrWiFi"
        interface = path.interfaceName
        source = path.source?.description
        gateway = path.gateway?.description
        isLocal = path.isLocal
    }

    /// Adds the state that ended with this line, and how long it had lasted.
    mutating func ends(_ state: Reachability, after duration: Duration) {
        previous = state
        previousSeconds = duration.seconds
    }

    /// The line for people: local time, host, state, how or why, and how long the state before lasted.
    func text(hostWidth: Int) -> String {
        let columns = [
            LocalTime.words(time),
            host.padded(to: hostWidth),
            statusWords,
        ]
        return columns.joined(separator: "  ") + before
    }

    /// The line of the general path, in the columns of `netwatch monitor`.
    var pathText: String {
        let columns = [
            LocalTime.words(time), "path".padded(to: 9), host.padded(to: 12),
            statusWords,
        ]
        return columns.joined(separator: "  ") + before
    }

    /// State, and how or why.
    var statusWords: String {
        reachability.words.padded(to: 13) + "  " + words
    }

    private var before: String {
        guard let previous, let previousSeconds, previous != reachability else { return "" }
        return "  (was \(previous.words) for \(DurationText.words(.seconds(previousSeconds))))"
    }
}

/// Times of day for people.
enum LocalTime {
    /// `14:03:49.202`
    static func words(_ time: Date) -> String {
        clock.string(from: time)
    }

    private static let clock: DateFormatter = {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.dateFormat = "HH:mm:ss.SSS"
        return formatter
    }()
}

extension String {
    /// The text with blanks to a width; longer text stays as it is.
    func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}
