/// An event of a transfer. The order is: at most one head, any number of body pieces, exactly one end. Progress may
/// come at any time before the end.
package enum TransferEvent: Sendable {
    case head(TransferHead)
    case body(BodyPiece)
    case progress(TransferProgress)
    /// Stored indirectly, because it is many times larger than the other cases.
    indirect case end(TransferEnd)
}

/// The head of a final response. Interim responses (1xx) and challenges that were answered with credentials are not
/// reported.
package struct TransferHead: Hashable, Sendable {
    package let status: Int
    /// The version as the server wrote it: `HTTP/1.1`, `HTTP/2`.
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
}

/// The number of body bytes sent and received over the wire. Reported when a value has changed.
///
/// A decoded response has fewer wire bytes than delivered bytes. A body of unknown length has more wire bytes than were
/// read from its source, because each chunk carries its length. `sent` restarts at 0 when the request is sent again.
package struct TransferProgress: Hashable, Sendable {
    package var sent: Int64
    /// The length of the request's body; `nil` if it is unknown.
    package var toSend: Int64?
    package var received: Int64
    /// The length of the response's body; `nil` until the head has arrived, and if the head does not state it.
    package var toReceive: Int64?

    package init(sent: Int64, toSend: Int64?, received: Int64, toReceive: Int64?) {
        self.sent = sent
        self.toSend = toSend
        self.received = received
        self.toReceive = toReceive
    }
}

/// How a transfer ended, and its metrics.
package struct TransferEnd: Hashable, Sendable {
    /// `nil` if the whole response was received, as far as libcurl can detect.
    ///
    /// libcurl 7.88.1 misses one case: an HTTP/2 server that breaks the protocol (a `DATA` frame longer than 16 KiB,
    /// RFC 9113 §4.2) in a body without an announced length. libcurl ends the connection as after a `GOAWAY` that
    /// follows a complete response, with the same code, 0. With a `Content-Length`, a truncated body is an error (18).
    package let failure: TransferFailure?
    package let metrics: TransferMetrics

    package init(failure: TransferFailure?, metrics: TransferMetrics) {
        self.failure = failure
        self.metrics = metrics
    }
}
