internal import Foundation
internal import NetwatchService
internal import NetworkReachability

/// An output line about a target. It is encoded as JSON, and has two forms for people.
struct HostLine: Encodable {
    var v = ControlMessage.version
    /// `host`, or `path` for the general path in `netwatch monitor`.
    var type = "host"
    var time: Date
    var host: String
    var reachability: Reachability
    /// The state of the host according to a probe, if one was sent.
    var state: ProbedState?
    var probe: String?
    var validation: String?
    var latencySeconds: Double?
    var phases: PhaseReport?
    var portal: String?
    var connection: String?
    var reason: String?
    var interface: String?
    var interfaceType: String?
    var medium: String?
    var tunnel: Bool?
    var source: String?
    var gateway: String?
    var isLocal: Bool?
    var pathGeneration: UInt64
    var previous: String?
    var previousSeconds: Double?

    private var title: String
    private var stateText: String
    private var detail: String

    private enum CodingKeys: String, CodingKey {
        case v, type, time, host, reachability, state, probe, validation, latencySeconds, phases, portal
        case connection, reason, interface, interfaceType, medium, tunnel, source, gateway
        case isLocal = "local"
        case pathGeneration, previous, previousSeconds
    }

    init(_ status: PathStatus, time: Date) {
        self.time = time
        host = status.target.description
        title = status.target.title
        reachability = status.reachability
        pathGeneration = status.pathGeneration
        stateText = status.reachability.summary
        detail = status.summary
        reason = status.reason?.rawValue
        guard let path = status.path else { return }
        connection = path.medium == .cellular ? "wwan" : "ethernetOrWiFi"
        interface = path.interfaceName
        interfaceType = path.interfaceType.rawValue
        medium = path.medium.rawValue
        tunnel = path.isTunnel
        source = path.source?.description
        gateway = path.gateway?.description
        isLocal = path.isLocal
    }

    /// Creates the line for a host that is probed.
    init(_ validated: ValidatedStatus, probe name: String?, time: Date) {
        self.init(validated.status, time: time)
        guard name != nil else { return }
        // A host without a path is not probed. It counts as down.
        state = validated.state ?? (validated.status.reachability == .notReachable ? .down : nil)
        guard let result = validated.probe else { return }
        probe = name
        validation = "\(result.validation)"
        latencySeconds = result.latency?.seconds
        phases = result.phases.map(PhaseReport.init)
        portal = result.portal?.userPortalURL
        stateText = validated.stateText
        detail = validated.summary()
    }

    /// Adds the previous state and how long it lasted.
    mutating func ends(_ state: String, after duration: Duration) {
        previous = state
        previousSeconds = duration.seconds
    }

    /// The line for people in the columns of `netwatch host`: local time, host, state, path or reason, and the duration
    /// of the previous state.
    func text(hostWidth: Int) -> StyledText {
        text(after: [title.padded(to: hostWidth)])
    }

    /// The line for people about the general path, in the columns of `netwatch monitor`.
    var pathText: StyledText {
        text(after: ["path".padded(to: 9), title.padded(to: 12)])
    }

    private func text(after columns: [String]) -> StyledText {
        let beginning = ([LocalTime.format(time)] + columns + [""]).joined(separator: "  ")
        return StyledText(beginning) + StyledText(state: stateText)
            + StyledText(statusText.dropFirst(stateText.count) + before)
    }

    /// The state, and the path or reason.
    var statusText: String {
        stateText.padded(to: 13) + "  " + detail
    }

    private var before: String {
        guard let previous, let previousSeconds else { return "" }
        return
            "  (was \(previous == "notReachable" ? "not reachable" : previous) for \(DurationText.format(.seconds(previousSeconds))))"
    }
}

/// The durations of the steps of a probe, in the output.
struct PhaseReport: Encodable {
    var lookupSeconds: Double?
    var connectSeconds: Double?
    var tlsSeconds: Double?
    var firstByteSeconds: Double?

    init(_ phases: ProbePhases) {
        lookupSeconds = phases.lookup?.seconds
        connectSeconds = phases.connect?.seconds
        tlsSeconds = phases.tls?.seconds
        firstByteSeconds = phases.firstByte?.seconds
    }

    /// `lookup 2.1 ms, connect 10.3 ms, TLS 14.9 ms, first byte 12.0 ms`; `nil` if no step has a duration.
    var text: String? {
        let steps = [
            ("lookup", lookupSeconds), ("connect", connectSeconds), ("TLS", tlsSeconds),
            ("first byte", firstByteSeconds),
        ]
        let texts = steps.compactMap { name, seconds in
            seconds.map { "\(name) \(TextFormat.latency($0 * 1000))" }
        }
        return texts.isEmpty ? nil : texts.joined(separator: ", ")
    }
}
