/// What a transfer reports, in this order: at most one head, any number of chunks, exactly one end. Progress
/// comes in between, at any time before the end.
package enum TransferEvent: Sendable {
    case head(TransferHead)
    case body(BodyPiece)
    case progress(TransferProgress)
    /// Behind a pointer: it is many times as large as the others, and each would take its room.
    indirect case end(TransferEnd)
}

/// The head of a final response. Interim ones (1xx), and those that asked for credentials which were sent
/// then, are not reported.
package struct TransferHead: Hashable, Sendable {
    package let status: Int
    /// As the server wrote it: `HTTP/1.1`, `HTTP/2`.
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

    /// In the order they came, names as the server wrote them.
    package var headers: [TransferRequest.Header] { fields.all }
}

/// How many bytes of the bodies have gone over the wire. Reported when something has changed.
///
/// Wire bytes: a response that is decoded has fewer of them than are delivered, and a body of unknown length
/// has more of them than were read, for each chunk says how long it is. What was sent begins again at 0 when
/// the request is sent again.
package struct TransferProgress: Hashable, Sendable {
    package var sent: Int64
    /// `nil` when the length of the request's body is not known.
    package var toSend: Int64?
    package var received: Int64
    /// `nil` until the head of the response has come, and when it does not tell.
    package var toReceive: Int64?

    package init(sent: Int64, toSend: Int64?, received: Int64, toReceive: Int64?) {
        self.sent = sent
        self.toSend = toSend
        self.received = received
        self.toReceive = toReceive
    }
}

/// How a transfer ended, and what it cost.
package struct TransferEnd: Hashable, Sendable {
    /// `nil` when the whole response has come, as far as libcurl can tell. What libcurl 7.88.1 cannot: an HTTP/2 server
    /// that breaks the protocol (a `DATA` frame longer than 16 KiB, RFC 9113 §4.2) in the middle of a body whose length
    /// it had not announced. libcurl ends the connection as after a `GOAWAY` that follows the whole response, with the
    /// same code, 0; a body with a `Content-Length` that is cut so is an error (18).
    package let failure: TransferFailure?
    package let metrics: TransferMetrics

    package init(failure: TransferFailure?, metrics: TransferMetrics) {
        self.failure = failure
        self.metrics = metrics
    }
}
