package import Foundation

extension ControlMessage {
    /// The body of `POST /v1/requests`: a request to send now, or to keep until it can be sent.
    package struct Send: Codable, Hashable, Sendable {
        package var url: String
        /// The HTTP method. Default `GET`.
        package var method: String?
        /// Pairs of header name and value.
        package var headers: [[String]]?
        /// The body as text. Only one of `body`, `body_base64` and `staged` may be given.
        package var body: String?
        /// The body as Base64 (RFC 4648 §4).
        package var bodyBase64: String?
        /// A body that was uploaded in pieces before.
        package var staged: StagedBody?
        /// When the service responds: the name of a ``QueueMode``. Default `auto`.
        package var queue: String?
        /// An id chosen by the client. Posting the same request with the same id again changes nothing.
        package var id: String?
        /// The label of the request's lane. Requests to one origin that have different labels are in different lanes.
        package var lane: String?
        /// Whether the lane sends its requests one at a time, in the order in which they were enqueued. Default false.
        package var fifo: Bool?
        /// The priority within the lane, 0 to 9. Lower numbers are sent first. Default 5.
        package var priority: Int?
        package var ttlSeconds: Double?
        package var deadline: Date?
        package var notBefore: Date?
        package var maxAttempts: Int?
        /// The timeouts of each attempt.
        package var connectTimeoutSeconds: Double?
        package var responseTimeoutSeconds: Double?
        package var totalTimeoutSeconds: Double?
        /// The version of HTTP of each attempt: `1.1` or `2`.
        package var httpVersion: String?
        /// The statuses after which the request is retried, and those after which it is given up, like `404,500-599`.
        package var retryStatuses: String?
        package var deadStatuses: String?
        /// A waiting request of the lane with the same key is replaced by this one.
        package var replaceKey: String?
        /// The ids of requests that must be delivered first.
        package var after: [String]?
        /// The response that counts as delivery, for example `status=2xx,type=application/json`.
        package var expect: String?
        /// Whether the request is never sent a second time if the server may have received it. Default false.
        package var atMostOnce: Bool?
        /// Short for an `idempotency` that has only a `key`. Cannot be combined with `idempotency`.
        package var idempotencyKey: String?
        package var idempotency: Idempotency?
        /// The name of the credential that the service adds at each attempt.
        package var credential: String?
        /// Whether the URL may be a signed one, whose signature is then stored. Default false.
        package var allowSignature: Bool?
        /// A text by which lists and edits select requests: 1 to 255 bytes of printable ASCII.
        package var tag: String?
        /// The webhook that receives the outcome when the request ends.
        package var onDone: Webhook?
        /// Whether the request is only sent over a connection that is not metered. Default false.
        package var onlyUnmetered: Bool?
        /// The kinds of interfaces over which the request may be sent. Default: any.
        package var interfaceKinds: [String]?
        /// The daily window in which the request is sent, like `22:00-06:00 Europe/Berlin`; UTC without a zone.
        package var window: String?
        /// What an accepted request survives: `full`, a power cut; `normal`, a crash of the service. Default `full`.
        package var durability: String?
        /// What happens if the queue is full: `reject`, `drop-oldest`, `drop-newest` or `block`. Default `reject`.
        package var whenFull: String?

        package init(url: String) {
            self.url = url
        }
    }

    /// When the service responds to a ``Send``.
    package enum QueueMode: String, Hashable, Sendable, CaseIterable {
        /// After the first attempt, or as soon as the request is on the disk if no attempt can be made now.
        case auto
        /// As soon as the request is on the disk.
        case always
    }

    /// A body that was uploaded as ``Piece``s.
    package struct StagedBody: Codable, Hashable, Sendable {
        package var id: String
        /// The total length of the body in bytes.
        package var size: Int64

        package init(id: String, size: Int64) {
            self.id = id
            self.size = size
        }
    }

    /// The webhook of a request.
    package struct Webhook: Codable, Hashable, Sendable {
        /// An `http` or `https` URL without secrets.
        package var url: String
        /// The name of the credential that the service adds at each attempt.
        package var credential: String?

        package init(url: String, credential: String? = nil) {
            self.url = url
            self.credential = credential
        }
    }

    /// The idempotency key of a request.
    package struct Idempotency: Codable, Hashable, Sendable {
        /// The key. By default one is generated for methods that are not idempotent.
        package var key: String?
        /// The name of the header field. Default `Idempotency-Key`.
        package var header: String?
        /// Whether the key is sent in quotes. Default false.
        package var quoted: Bool?
        /// Whether the request is sent without a key. Cannot be combined with `key`. Default false.
        package var none: Bool?
    }

    /// The response to ``Send``. The service sends it after it has stored the request and, if the request is finished,
    /// its result.
    package struct Sent: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// The id; `nil` if the request was sent without the queue.
        package var id: String?
        /// `delivered`, `queued`, `dead`, `cancelled`, `superseded` or `dropped`. A request is dropped if the queue is
        /// full and `when_full` allows dropping.
        package var state: String
        /// The HTTP status of the last response, for a finished request.
        package var status: Int?
        /// Why the request is queued or was given up, for people.
        package var reason: String?
        /// The hold reason of a held request, as in ``ControlMessage/Entry``; otherwise `nil`.
        package var holdReason: String?
        /// The id of the request for which this one waits, as in ``ControlMessage/Entry``; `nil` from services of
        /// earlier versions.
        package var waitsForRequest: String?
        /// Base64 of the first 64 KiB of the server's response body, for a delivered request.
        package var bodyBase64: String?
        /// `true` if the queue already knew the id, so that this call added no request; otherwise `nil`.
        package var known: Bool?

        package init(
            id: String?,
            state: String,
            status: Int? = nil,
            reason: String? = nil,
            holdReason: String? = nil,
            bodyBase64: String? = nil
        ) {
            self.id = id
            self.state = state
            self.status = status
            self.reason = reason
            self.holdReason = holdReason
            self.bodyBase64 = bodyBase64
        }
    }

    /// The response to `PATCH /v1/bodies/{id}?offset=N`.
    package struct Piece: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var id: String
        /// The number of bytes uploaded so far.
        package var size: Int64
    }
}

extension ControlMessage {
    /// The response to `GET /v1/bodies`: the uploads that no request uses yet.
    package struct StagedBodies: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var bodies: [Upload]

        package struct Upload: Codable, Hashable, Sendable {
            package var v = ControlMessage.version
            package var id: String
            /// The number of uploaded bytes.
            package var size: Int64
            /// The seconds since the last piece arrived.
            package var idleSeconds: Double
        }
    }

    /// The response to `DELETE /v1/bodies` and `DELETE /v1/bodies/{id}`.
    package struct RemovedBodies: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// The number of removed uploads.
        package var bodies: Int
        /// The number of bytes that the removed uploads had.
        package var bytes: Int64

        package init(bodies: Int, bytes: Int64) {
            self.bodies = bodies
            self.bytes = bytes
        }
    }
}

extension ControlMessage.Sent {
    /// Creates the response to a ``ControlMessage/Send`` whose id was already known, from the details of that request.
    package init(_ details: ControlMessage.Details) {
        let request = details.request
        let isOver = request.finished != nil
        let body = details.response?.bodyBase64 ?? ""
        self.init(
            id: request.id,
            state: isOver ? request.state : "queued",
            status: isOver ? request.status : nil,
            reason: Self.reason(of: request),
            holdReason: request.holdReason,
            bodyBase64: body.isEmpty ? nil : body
        )
        waitsForRequest = request.waitsForRequest
    }

    private static func reason(of request: ControlMessage.Entry) -> String? {
        switch request.state {
        case "delivered": nil
        case "inflight": "an attempt is in progress"
        default: request.reason
        }
    }
}
