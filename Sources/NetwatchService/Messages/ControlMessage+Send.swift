package import Foundation

extension ControlMessage {
    /// `POST /v1/requests`: a request to be sent now, or kept until it can be.
    package struct Send: Codable, Hashable, Sendable {
        package var url: String
        /// Default `GET`.
        package var method: String?
        /// Name and value of each header.
        package var headers: [[String]]?
        /// The body as text. One of `body`, `body_base64` and `staged` at most.
        package var body: String?
        /// The body as Base64 (RFC 4648 §4).
        package var bodyBase64: String?
        /// A body that was handed over in pieces.
        package var staged: StagedBody?
        /// Whether it is tried before the answer: a ``QueueMode``. Default `auto`.
        package var queue: String?
        /// An id of the client's own, which makes the call repeatable.
        package var id: String?
        /// Sets apart requests to the same origin.
        package var lane: String?
        /// Whether requests of the lane go out one by one, in the order they came. Default false.
        package var fifo: Bool?
        package var priority: Int?
        package var ttlSeconds: Double?
        package var deadline: Date?
        package var notBefore: Date?
        package var maxAttempts: Int?
        /// How long the parts of an attempt may take.
        package var connectTimeoutSeconds: Double?
        package var responseTimeoutSeconds: Double?
        package var totalTimeoutSeconds: Double?
        package var replaceKey: String?
        /// Ids of requests that have to be delivered before.
        package var after: [String]?
        /// As in `status=2xx,type=application/json`.
        package var expect: String?
        package var atMostOnce: Bool?
        /// The short form of `idempotency` with a `key` only.
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
        /// Tried once before the answer, if it can be.
        case auto
        /// Answered as soon as it is on the disk.
        case always
    }

    /// A body that ``Piece``s made.
    package struct StagedBody: Codable, Hashable, Sendable {
        package var id: String
        /// How many bytes it has in all.
        package var size: Int64

        package init(id: String, size: Int64) {
            self.id = id
            self.size = size
        }
    }

    package struct Idempotency: Codable, Hashable, Sendable {
        /// Default: made for methods that are not idempotent.
        package var key: String?
        /// The name of the header field. Default `Idempotency-Key`.
        package var header: String?
        /// Whether it is sent in quotes. Default false.
        package var quoted: Bool?
        /// No key at all; excludes `key`. Default false.
        package var none: Bool?
    }

    /// The answer to ``Send``. With `delivered` and `queued` the request is safe on the disk, and with `dead`
    /// what became of it.
    package struct Sent: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// `nil` when it was sent without the queue.
        package var id: String?
        /// `delivered`, `queued`, `dead`, `cancelled`, `superseded`, or `dropped` when the queue was full and
        /// that was wanted then.
        package var state: String
        /// The HTTP status of the last answer, of a request that is over.
        package var status: Int?
        /// Why a request is queued or was given up, for people.
        package var reason: String?
        /// The first 64 KiB of the answer to a delivered request.
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

    /// The answer to `PATCH /v1/bodies/{id}?offset=N`.
    package struct Piece: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var id: String
        /// How many bytes the body has now.
        package var size: Int64
    }
}

extension ControlMessage {
    /// `GET /v1/bodies`: the uploads that no request uses yet.
    package struct StagedBodies: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var bodies: [Upload]

        package struct Upload: Codable, Hashable, Sendable {
            package var v = ControlMessage.version
            package var id: String
            /// How many bytes were uploaded.
            package var size: Int64
            /// How long ago the last piece came.
            package var idleSeconds: Double
        }
    }

    /// The answer to `DELETE /v1/bodies` and `DELETE /v1/bodies/{id}`.
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
    /// What became of a request that was accepted earlier.
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
