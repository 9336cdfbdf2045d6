package import Foundation

/// The bodies of the control API. Members that a reader does not know are to be ignored.
package enum ControlMessage {
    /// The version that every answer carries as `v`.
    package static let version = 1

    /// The longest body that a message carries: 1 MiB.
    package static let maximumBodyBytes = 1 << 20

    /// `POST /v1/requests`: a request to be sent now, or kept until it can be.
    package struct Send: Codable, Hashable, Sendable {
        package var url: String
        /// Default `GET`.
        package var method: String?
        /// Name and value of each header.
        package var headers: [[String]]?
        /// The body as text; excludes `body_base64`.
        package var body: String?
        /// The body as Base64 (RFC 4648 §4).
        package var bodyBase64: String?
        /// Whether requests of the lane go out one by one, in the order they came. Default false.
        package var fifo: Bool?
        /// Sets apart requests to the same origin.
        package var lane: String?
        /// An id of the client's own, which makes the call repeatable.
        package var id: String?
        package var idempotencyKey: String?

        package init(url: String) {
            self.url = url
        }
    }

    /// The answer to ``Send``. With any `state` but `dead` the request is delivered or safe on the disk.
    package struct Sent: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var id: String
        /// `delivered`, `queued` or `dead`.
        package var state: String
        /// The HTTP status of a delivered request.
        package var status: Int?
        /// Why a request is queued or dead, for people.
        package var reason: String?
        /// The first 64 KiB of the response to a delivered request.
        package var bodyBase64: String?
    }

    /// `GET /v1/requests`.
    package struct List: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var requests: [Entry]
        /// How many requests are in each state, listed or not.
        package var counts: [String: Int]
    }

    /// One request of the queue.
    package struct Entry: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var id: String
        /// `pending`, `inflight`, `held`, `delivered` or `dead`.
        package var state: String
        package var holdReason: String?
        package var method: String
        package var url: String
        package var lane: String?
        package var fifo: Bool
        package var attempts: Int
        /// Times it was put off without costing an attempt, because the network was down.
        package var deferrals: Int
        package var created: Date
        package var due: Date?
        package var finished: Date?
        package var status: Int?
        package var lastError: String?
    }

    /// `POST /v1/queue/flush`.
    package struct Flushed: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// How many requests are now being tried, or wait their turn to be.
        package var requests: Int
    }

    /// An error: RFC 9457.
    package struct ProblemDetails: Decodable, Hashable, Sendable {
        package var status: Int
        package var code: String
        package var detail: String
    }

    /// Names are in snake case, times RFC 3339 in UTC.
    package static var encoder: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(date.rfc3339)
        }
        return encoder
    }

    package static var decoder: JSONDecoder {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            return try Date.rfc3339.parse(try container.decode(String.self))
        }
        return decoder
    }
}

extension Date {
    fileprivate static let rfc3339 = Date.ISO8601FormatStyle(includingFractionalSeconds: true)

    /// RFC 3339 in UTC with milliseconds: `2026-01-31T12:34:56.789Z`.
    package var rfc3339: String {
        formatted(Self.rfc3339)
    }
}
