/// The durations of the steps of a probe. The duration of a step that did not occur, or that did not end, is `nil`.
public struct ProbePhases: Hashable, Sendable {
    /// The duration of the name lookup. `nil` also if the probe was sent to addresses that were known before.
    public var lookup: Duration?
    /// The duration of connecting, without TLS.
    public var connect: Duration?
    /// The duration of the TLS handshake.
    public var tls: Duration?
    /// The time from the beginning of the request to the first byte of the response.
    public var firstByte: Duration?

    /// Creates phases without durations.
    public init() {}
}
