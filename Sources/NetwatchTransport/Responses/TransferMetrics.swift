package import NetwatchEventLoop

/// The timings and sizes of a transfer, whether it succeeded or failed.
///
/// All durations are measured from ``startedAt``. A duration is `nil` if the transfer did not get that far. If the
/// request was sent again with credentials, the durations belong to the last time that it was sent. The numbers of
/// header bytes are sums over all times.
package struct TransferMetrics: Hashable, Sendable {
    /// The time at which the caller passed the transfer to the engine.
    package var startedAt: BootInstant
    /// The time at which the transfer stopped waiting for other transfers to the same host.
    package var begun: Duration?
    /// The time at which the name lookup succeeded or failed; `nil` also if no lookup was needed.
    package var lookupEnded: Duration?
    /// The addresses that the lookup returned; empty if no lookup was needed.
    package var addresses: [IPAddress] = []
    /// The time at which the connection was established; `nil` also for a reused connection.
    package var connected: Duration?
    /// The time at which the TLS handshake was complete; `nil` also for a reused connection.
    package var tlsEnded: Duration?
    /// The time at which a connection was ready for the request.
    package var requestReady: Duration?
    /// The time at which the kernel had accepted the whole request; `nil` also if the response began before that. For a
    /// body of unknown length: the time at which libcurl had read all of it.
    ///
    /// The engine checks this when the response begins, and at the end of each turn of libcurl in which the transfer
    /// had an event. The time may therefore be late.
    package var requestSent: Duration?
    /// The time at which the first byte of the response arrived.
    package var firstByte: Duration?
    package var ended: Duration?

    /// The local IP address; `nil` for a unix socket.
    package var localAddress: String?
    package var localPort: Int?
    /// The server's IP address.
    package var remoteAddress: String?
    package var remotePort: Int?

    /// The HTTP version by its ALPN name (RFC 7301), such as `http/1.1` or `h2`.
    package var httpVersion: String?

    package var requestHeaderBytes: Int64 = 0
    package var requestBodyBytes: Int64 = 0
    package var responseHeaderBytes: Int64 = 0
    /// The bytes received over the wire, before decoding.
    package var responseBodyBytes: Int64 = 0

    /// The authentication schemes that the server has offered in any response of the transfer.
    package var offeredSchemes: TransferCredentials.Schemes = []

    /// Whether the connection was reused from an earlier transfer.
    package var reusedConnection = false
    /// Whether the request went over TLS.
    package var usedTLS = false

    package init(startedAt: BootInstant) {
        self.startedAt = startedAt
    }
}
