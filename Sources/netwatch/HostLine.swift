internal import Foundation
internal import NetwatchService
internal import NetworkReachability

/// Prints the statuses of one target, each with how long the one before lasted.
struct HostReport {
    let format: OutputFormat
    private var previous: (line: HostLine, since: ContinuousClock.Instant)?

    init(format: OutputFormat) {
        self.format = format
    }

    mutating func print(_ status: PathStatus) {
        let now = ContinuousClock.now
        var line = HostLine(status, time: Date())
        if let previous {
            line.previous = previous.line.reachability
            line.previousSeconds = previous.since.duration(to: now).seconds
        }
        switch format {
        // The same words again: only the path's generation rose, which JSON has a member for.
        case .text where previous?.line.isSame(to: line) == true: break
        case .text: Printer.data(line.text)
        case .json: Printer.json(line, with: ControlMessage.encoder)
        }
        // A change of reason or path does not begin a new state.
        let isSameState = previous?.line.reachability == line.reachability
        previous = (line, isSameState ? previous!.since : now)
    }
}

/// One line of output, as JSON has it.
struct HostLine: Encodable {
    var v = ControlMessage.version
    var type = "host"
    var time: Date
    var host: String
    /// `reachable`, `notReachable` or `unknown`.
    var reachability: String
    var connection: String?
    var reason: String?
    var interface: String?
    var source: String?
    var gateway: String?
    var isLocal: Bool?
    var pathGeneration: UInt64
    var previous: String?
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
        pathGeneration = status.pathGeneration
        switch status.verdict {
        case .unknown(let reason): (reachability, words) = ("unknown", "\(reason)")
        case .notReachable(let reason): (reachability, words) = ("notReachable", "\(reason)")
        case .reachable(let path): (reachability, words) = ("reachable", path.words)
        }
        reason = status.reason?.rawValue
        guard let path = status.path else { return }
        connection = "ethernetOrWiFi"
        interface = path.interfaceName
        source = path.source?.description
        gateway = path.gateway?.description
        isLocal = path.isLocal
    }

    /// Whether a person would read the same.
    func isSame(to other: HostLine) -> Bool {
        reachability == other.reachability && words == other.words
    }

    /// The line for people: local time, host, state, how or why, and how long the state before lasted.
    var text: String {
        let state = reachability == "notReachable" ? "not reachable" : reachability
        let columns = [
            Self.clock.string(from: time),
            host.padding(toLength: max(host.count, 20), withPad: " ", startingAt: 0),
            state.padding(toLength: 13, withPad: " ", startingAt: 0),
            words,
        ]
        return columns.joined(separator: "  ") + before
    }

    private var before: String {
        guard let previous, let previousSeconds, previous != reachability else { return "" }
        let state = previous == "notReachable" ? "not reachable" : previous
        return "  (was \(state) for \(String(format: "%.1f", previousSeconds)) s)"
    }

    private static let clock: DateFormatter = {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.dateFormat = "HH:mm:ss.SSS"
        return formatter
    }()
}

extension NetworkPath {
    /// `eth0 192.0.2.7 via 192.0.2.1`
    fileprivate var words: String {
        if isLocal { return "this machine" }
        let source = source.map { " \($0)" } ?? ""
        return interfaceName + source + (gateway.map { " via \($0)" } ?? "")
    }
}

extension Duration {
    fileprivate var seconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}
