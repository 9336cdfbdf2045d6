package import Foundation

extension ControlMessage {
    /// `POST /v1/requests`: a request to send now, or to keep until it can be sent.
    package struct Send: Codable, Hashable, Sendable {
        package var url: String
        /// The HTTP method. Default `GET`.
        package var method: String?
        /// Pairs of header name and value.
        package var headers: [[String]]?
        /// The body as text. At most one of `body`, `body_base64` and `staged` may be given.
        package var body: String?
        /// The body as Base64 (RFC 4648 §4).
        package var bodyBase64: String?
        /// A body that was uploaded in pieces.
        package var staged: StagedBody?
        /// Whether the request is tried before the response: a ``QueueMode``. Default `auto`.
        package var queue: String?
        /// An id chosen by the client, which makes the call repeatable.
        package var id: String?
        /// The label of the lane, which separates requests to the same origin.
        package var lane: String?
        /// Whether the requests of the lane are sent one at a time, in the order they were enqueued. Default false.
        package var fifo: Bool?
        package var priority: Int?
        package var ttlSeconds: Double?
        package var deadline: Date?
        package var notBefore: Date?
        package var maxAttempts: Int?
        /// The timeouts of an attempt.
        package var connectTimeoutSeconds: Double?
        package var responseTimeoutSeconds: Double?
        package var totalTimeoutSeconds: Double?
        package var replaceKey: String?
        /// The ids of requests that must be delivered first.
        package var after: [String]?
        /// The expected response, for example `status=2xx,type=application/json`.
        package var expect: String?
        package var atMostOnce: Bool?
        /// The short form of `idempotency` with only a `key`.
        package var idempotencyKey: String?
        package var idempotency: Idempotency?
        /// `full` or `normal`.
        package var durability: String?
        /// `reject`, `drop-oldest`, `drop-newest` or `block`.
        package var whenFull: String?

        package init(url: String) {
            self.url = url
        }
    }

    package enum QueueMode: String, Hashable, Sendable, CaseIterable {
        /// Tries the request once before the response, if that is possible.
        case auto
        /// Responds as soon as the request is on the disk.
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

    package struct Idempotency: Codable, Hashable, Sendable {
        /// The key. By default one is generated for methods that are not idempotent.
        package var key: String?
        /// The name of the header field. Default `Idempotency-Key`.
        package var header: String?
        /// Whether the key is sent in quotes. Default false.
        package var quoted: Bool?
        /// Whether no key is sent; excludes `key`. Default false.
        package var none: Bool?
    }

    /// The response to ``Send``. If the state is `delivered` or `queued`, the request is safely on disk. If it is
    /// `dead`, its result is.
    package struct Sent: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// The id; `nil` if the request was sent without the queue.
        package var id: String?
        /// `delivered`, `queued`, `dead`, `cancelled`, `superseded`, or `dropped` if the queue was full and `when_full`
        /// allows dropping.
        package var state: String
        /// The HTTP status of the last response, for a finished request.
        package var status: Int?
        /// Why the request is queued or was given up, for people.
        package var reason: String?
        /// The first 64 KiB of the response to a delivered request.
        package var bodyBase64: String?

        package init(
            id: String?,
            state: String,
            status: Int? = nil,
            reason: String? = nil,
            bodyBase64: String? = nil
        ) {
            self.id = id
            self.state = state
            self.status = status
            self.reason = reason
            self.bodyBase64 = bodyBase64
        }
    }

    /// The response to `PATCH /v1/bodies/{id}?offset=N`.
    package struct Piece: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var id: String
        /// The current length of the body in bytes.
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
            /// The time since the last piece arrived.
            package var idleSeconds: Double
        }
    }

    /// The response to `DELETE /v1/bodies` and `DELETE /v1/bodies/{id}`.
    package struct RemovedBodies: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var bodies: Int
        package var bytes: Int64

        package init(bodies: Int, bytes: Int64) {
            self.bodies = bodies
            self.bytes = bytes
        }
    }
}

extension ControlMessage.Sent {
    /// Creates the response for a request that was accepted earlier.
    package init(_ details: ControlMessage.Details) {
        let request = details.request
        let isOver = request.finished != nil
        let body = details.response?.bodyBase64 ?? ""
        self.init(
            id: request.id,
            state: isOver ? request.state : "queued",
            status: isOver ? request.status : nil,
            reason: request.state == "delivered" ? nil : request.reason,
            bodyBase64: body.isEmpty ? nil : body
        )
    }
}
