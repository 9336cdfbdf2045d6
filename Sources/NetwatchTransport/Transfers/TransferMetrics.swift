package import NetwatchEventLoop

/// What a transfer cost, however it ended.
///
/// Durations are since ``startedAt``; each is `nil` when the transfer did not come that far. A request that
/// was sent again, with credentials, has those of the last time it was sent; bytes of heads are of all times.
package struct TransferMetrics: Hashable, Sendable {
    /// When the engine was asked for the transfer.
    package var startedAt: ContinuousClock.Instant
    /// When it no longer had to wait for other transfers to the same host.
    package var begun: Duration?
    /// When the host's addresses were known, or known to be unknown; `nil` also when there was nothing to look
    /// up.
    package var lookupEnded: Duration?
    /// What the host's name was looked up to; empty when there was nothing to look up.
    package var addresses: [IPAddress] = []
    /// When the connection was made; `nil` also on a reused one.
    package var connected: Duration?
    /// When the TLS handshake was over; `nil` also on a reused connection.
    package var tlsEnded: Duration?
    /// When there was a connection to send the request over.
    package var requestReady: Duration?
    /// When the response began.
    package var firstByte: Duration?
    package var ended: Duration?

    /// This end of the connection, an IP address; `nil` on a unix socket.
    package var localAddress: String?
    package var localPort: Int?
    /// The server's end of the connection.
    package var remoteAddress: String?
    package var remotePort: Int?

    /// As ALPN names it (RFC 7301): `http/1.1`, `h2`.
    package var httpVersion: String?

    package var requestHeaderBytes: Int64 = 0
    package var requestBodyBytes: Int64 = 0
    package var responseHeaderBytes: Int64 = 0
    /// As they came over the wire, before they were decoded.
    package var responseBodyBytes: Int64 = 0

    /// Whether the connection was one that an earlier transfer had made.
    package var reusedConnection = false
    /// Whether the request went over TLS.
    package var usedTLS = false

    package init(startedAt: ContinuousClock.Instant) {
        self.startedAt = startedAt
    }
}
