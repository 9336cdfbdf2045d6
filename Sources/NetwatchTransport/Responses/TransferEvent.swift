internal import NetwatchEventLoop

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
