package import NetwatchEventLoop

/// The timings and sizes of a transfer, whether it succeeded or failed.
///
/// Durations are relative to ``startedAt``. Each is `nil` if the transfer did not get that far. If the request was sent
/// again with credentials, they belong to the last time; header bytes are the sum of all times.
package struct TransferMetrics: Hashable, Sendable {
    /// When the transfer was requested from the engine.
    package var startedAt: ContinuousClock.Instant
    /// When the transfer stopped waiting for other transfers to the same host.
    package var begun: Duration?
    /// When the name lookup ended, successfully or not; `nil` also if no lookup was needed.
    package var lookupEnded: Duration?
    /// The addresses that the lookup returned; empty if no lookup was needed.
    package var addresses: [IPAddress] = []
    /// When the connection was established; `nil` also for a reused connection.
    package var connected: Duration?
    /// When the TLS handshake was complete; `nil` also for a reused connection.
    package var tlsEnded: Duration?
    /// When there was a connection to send the request over.
    package var requestReady: Duration?
    /// When the kernel had accepted the whole request; for a body of unknown length, when libcurl had read all of it.
    /// It is checked at the end of each turn of libcurl in which the transfer had an event, and when the response
    /// begins, so it may be late. `nil` if the response began before.
    package var requestSent: Duration?
    /// When the first byte of the response arrived.
    package var firstByte: Duration?
    package var ended: Duration?

    /// The local IP address; `nil` for a unix socket.
    package var localAddress: String?
    package var localPort: Int?
    /// The server's IP address.
    package var remoteAddress: String?
    package var remotePort: Int?

    /// The ALPN name of the version (RFC 7301): `http/1.1`, `h2`.
    package var httpVersion: String?

    package var requestHeaderBytes: Int64 = 0
    package var requestBodyBytes: Int64 = 0
    package var responseHeaderBytes: Int64 = 0
    /// The bytes received over the wire, before decoding.
    package var responseBodyBytes: Int64 = 0

    /// Whether the connection was reused from an earlier transfer.
    package var reusedConnection = false
    /// Whether the request went over TLS.
    package var usedTLS = false

    package init(startedAt: ContinuousClock.Instant) {
        self.startedAt = startedAt
    }
}
