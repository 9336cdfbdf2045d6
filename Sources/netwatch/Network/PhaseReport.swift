internal import NetwatchService
internal import NetworkReachability

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
