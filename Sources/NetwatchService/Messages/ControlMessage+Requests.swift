package import Foundation

extension ControlMessage {
    /// The response to `GET /v1/requests`.
    package struct List: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var requests: [Entry]
        /// The number of requests in each state, whether listed or not.
        package var counts: [String: Int]
        /// The value of `after` for the next page; `nil` on the last page.
        package var next: String?
    }

    /// `GET /v1/ids?prefix=TEXT`: the sorted ids that begin with the text. An id equal to the text comes first.
    package struct IDs: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var ids: [String]
    }

    /// A request of the queue.
    package struct Entry: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var id: String
        /// `pending`, `blocked`, `inflight`, `held`, `delivered`, `dead`, `cancelled` or `superseded`.
        package var state: String
        package var holdReason: String?
        package var method: String
        package var url: String
        package var lane: String?
        package var fifo: Bool
        package var priority: Int
        package var bodyBytes: Int64
        package var attempts: Int
        /// How often the request was postponed without using an attempt, because the network was down or this machine
        /// was short of a resource.
        package var deferrals: Int
        package var created: Date
        package var due: Date?
        package var expires: Date?
        package var finished: Date?
        package var status: Int?
        package var lastError: String?
        /// Why the request is not delivered, for people.
        package var reason: String?
        /// What a pending or blocked request waits for: `network`, `retry`, `lane`, `slot`, `resources`, `earlier`,
        /// `dependencies`, `time` or `resume`.
        package var waitsFor: String?
        /// While the lane is closed: the time until which, and the response's status if a server's `Retry-After` closed
        /// it.
        package var laneClosedUntil: Date?
        package var laneClosedBy: Int?
    }

    /// The response to `GET /v1/requests/{id}`.
    package struct Details: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var request: Entry
        package var headers: [[String]]
        package var idempotencyKey: String?
        package var replaceKey: String?
        /// The ids of the requests that this one still waits for.
        package var after: [String]
        package var atMostOnce: Bool
        /// The timeouts of the next attempt. A missing total means that the queue's default applies. Services of
        /// earlier versions send none of them.
        package var connectTimeoutSeconds: Double?
        package var responseTimeoutSeconds: Double?
        package var totalTimeoutSeconds: Double?
        /// The time until which the server may still be executing an attempt that timed out. No attempt starts before
        /// it.
        package var busyUntil: Date?
        /// The most recent attempts, oldest first.
        package var attempts: [Attempt]
        package var response: Response?
    }

    package struct Attempt: Codable, Hashable, Sendable {
        /// The number of the attempt, starting at 1.
        package var number: Int
        package var started: Date
        package var durationSeconds: Double
        package var status: Int?
        /// The error code of libcurl, 0 if a response arrived.
        package var curlCode: Int
        package var error: String?
    }

    package struct Response: Codable, Hashable, Sendable {
        package var status: Int
        package var headers: [[String]]
        /// The first 64 KiB of the body.
        package var bodyBase64: String
        package var truncated: Bool
    }
}
