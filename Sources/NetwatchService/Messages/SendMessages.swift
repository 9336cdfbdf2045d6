internal import Foundation
package import OfflineQueue

extension ControlMessage {
    /// The body of `POST /v1/requests`: a request to send now, or to keep until it can be sent. The members are those of
    /// the request and of its options, and `queue`.
    package struct Send: Hashable, Sendable {
        package var request: QueueRequest
        package var options: EnqueueOptions
        /// When the service responds.
        package var queue = QueueMode.auto

        /// Creates a message without options: those of the service's configuration apply.
        package init(_ request: QueueRequest) {
            self.request = request
            options = Self.unset
        }

        /// The options of which none is sent. The times are values that no client can send, so that a time that equals a
        /// default is sent.
        private static let unset: EnqueueOptions = {
            let never: Duration = .nanoseconds(-1)
            var options = EnqueueOptions()
            (options.timeToLive, options.timeouts.connect, options.timeouts.response) = (never, never, never)
            return options
        }()
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
        /// The hold reason of a held request; otherwise `nil`.
        package var holdReason: HoldReason?
        /// The id of the request for which this one waits; see `QueuedRequest.waitsForID`.
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
            holdReason: HoldReason? = nil,
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

extension ControlMessage.Send: Codable {
    private enum CodingKeys: CodingKey {
        case queue
    }

    package init(from decoder: any Decoder) throws {
        request = try QueueRequest(from: decoder)
        options = try EnqueueOptions(from: decoder)
        let container = try decoder.container(keyedBy: CodingKeys.self)
        guard let name = try container.decodeIfPresent(String.self, forKey: .queue) else { return }
        guard let mode = ControlMessage.QueueMode(rawValue: name) else {
            let accepted = ControlMessage.QueueMode.allCases.map(\.rawValue).joined(separator: ", ")
            throw QueueError(.invalidOption, "`queue` is `\(name.prefix(80))`; it must be one of \(accepted)")
        }
        queue = mode
    }

    package func encode(to encoder: any Encoder) throws {
        try request.encode(to: encoder)
        try options.encode(to: encoder, except: Self.unset)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(queue.rawValue, forKey: .queue)
    }

    /// The body, if it was uploaded before.
    package var staged: ControlMessage.StagedBody? {
        guard case .staged(let id, let size) = request.body else { return nil }
        return ControlMessage.StagedBody(id: id, size: size)
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
    package init(_ details: RequestDetails) {
        let request = details.summary
        let isOver = request.state.isFinal
        let body = details.response?.body ?? Data()
        self.init(
            id: request.id,
            state: isOver ? request.state.rawValue : "queued",
            status: isOver ? request.status : nil,
            reason: Self.reason(of: request),
            holdReason: request.holdReason,
            bodyBase64: body.isEmpty ? nil : body.base64EncodedString()
        )
        waitsForRequest = request.waitsForID
    }

    private static func reason(of request: QueuedRequest) -> String? {
        switch request.state {
        case .delivered: nil
        case .inflight: "an attempt is in progress"
        default: request.reason
        }
    }
}
