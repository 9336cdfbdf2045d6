package import NetwatchEventLoop

/// An event of a transfer.
///
/// A transfer has at most one head, then any number of body pieces, and exactly one end. Connections and progress may
/// be reported at any time before the end.
package enum TransferEvent: Sendable {
    /// A new connection to this peer was made for the transfer. Not reported for loopback addresses.
    case connected(ConnectionPeer)
    case head(TransferHead)
    case body(BodyPiece)
    case progress(TransferProgress)
    /// The last event. It is stored indirectly, because it is many times larger than the other cases.
    indirect case end(TransferEnd)
}

/// The head of the final response. Interim responses (1xx) are not reported. Neither is a challenge that libcurl
/// answers by sending the request again with credentials.
package struct TransferHead: Hashable, Sendable {
    package let status: Int
    /// The HTTP version as the server wrote it, such as `HTTP/1.1` or `HTTP/2`.
    package let version: String
    package let fields: HeaderFields

    package init(status: Int, version: String, fields: HeaderFields) {
        self.status = status
        self.version = version
        self.fields = fields
    }

    package init(status: Int, version: String, headers: [TransferRequest.Header]) {
        self.init(status: status, version: version, fields: HeaderFields(headers))
    }

    /// All fields in the order received. Names keep the server's spelling.
    package var headers: [TransferRequest.Header] { fields.all }

    /// Whether the connection speaks HTTP/2 and so carries many transfers at a time.
    var isMultiplexed: Bool { version == "HTTP/2" }
}

/// The number of body bytes that were sent and received over the wire. Reported when a value has changed.
///
/// These numbers may differ from the sizes that the program sees:
///
/// - A compressed response body has fewer bytes on the wire than are delivered after decoding.
/// - A request body of unknown length has more bytes on the wire than were read from its source, because each chunk
///   carries its length.
///
/// `sent` restarts at 0 when the request is sent again.
package struct TransferProgress: Hashable, Sendable {
    package var sent: Int64
    /// The length of the request's body in bytes; `nil` if it is unknown.
    package var toSend: Int64?
    package var received: Int64
    /// The length of the response's body in bytes; `nil` until the head has arrived, or if the head does not state it.
    package var toReceive: Int64?

    package init(sent: Int64, toSend: Int64?, received: Int64, toReceive: Int64?) {
        self.sent = sent
        self.toSend = toSend
        self.received = received
        self.toReceive = toReceive
    }
}

/// The end of a transfer: its failure, if it failed, and its metrics.
package struct TransferEnd: Hashable, Sendable {
    /// The reason why the transfer failed; `nil` if the whole response was received.
    ///
    /// In one case libcurl 7.88.1 does not detect that a response is truncated: an HTTP/2 server breaks the protocol
    /// with a `DATA` frame longer than 16 KiB (RFC 9113 §4.2), in a body without a `Content-Length`. libcurl then
    /// reports success (code 0), as it does for a complete response that is followed by a `GOAWAY`. With a
    /// `Content-Length`, it reports the truncated body as an error (18).
    package let failure: TransferFailure?
    package let metrics: TransferMetrics

    package init(failure: TransferFailure?, metrics: TransferMetrics) {
        self.failure = failure
        self.metrics = metrics
    }
}

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

/// The remote end of a connection. The route to it may depend on the port (ip-rule(8), `dport`).
package struct ConnectionPeer: Hashable, Sendable, CustomStringConvertible {
    package let address: IPAddress
    package let port: UInt16

    package init(address: IPAddress, port: UInt16) {
        (self.address, self.port) = (address, port)
    }

    /// The address and the port, for example `192.0.2.1:443` or `[2001:db8::1]:443`.
    package var description: String {
        let address = address.description
        return "\(address.contains(":") ? "[\(address)]" : address):\(port)"
    }
}
