package import Foundation

extension ControlMessage {
    /// `GET /v1/requests`.
    package struct List: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var requests: [Entry]
        /// How many requests are in each state, listed or not.
        package var counts: [String: Int]
        /// What `after` has to be for the next page; `nil` after the last.
        package var next: String?
    }

    /// `GET /v1/ids?prefix=TEXT`: ids that begin with the text, sorted, so that one that is the text comes first.
    package struct IDs: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var ids: [String]
    }

    /// One request of the queue.
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
        /// Times it was postponed without costing an attempt: the network was down, or this machine was short of
        /// something.
        package var deferrals: Int
        package var created: Date
        package var due: Date?
        package var expires: Date?
        package var finished: Date?
        package var status: Int?
        package var lastError: String?
        /// Why it is not delivered, for people.
        package var reason: String?
        /// What it waits for while it is pending or blocked: `network`, `retry`, `lane`, `slot`, `resources`, `earlier`,
        /// `dependencies`, `time` or `resume`.
        package var waitsFor: String?
        /// While its lane is closed: until when, and the status of the answer if a server's `Retry-After` closed it.
        package var laneClosedUntil: Date?
        package var laneClosedBy: Int?
    }

    /// `GET /v1/requests/{id}`.
    package struct Details: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var request: Entry
        package var headers: [[String]]
        package var idempotencyKey: String?
        package var replaceKey: String?
        /// The requests that it still waits for.
        package var after: [String]
        package var atMostOnce: Bool
        /// How long the parts of the next attempt may take; no total is the queue's own. A service of an
        /// older version names none.
        package var connectTimeoutSeconds: Double?
        package var responseTimeoutSeconds: Double?
        package var totalTimeoutSeconds: Double?
        /// Until when the server may still execute an attempt that a timeout has cut; no attempt begins before.
        package var busyUntil: Date?
        /// The newest, oldest first.
        package var attempts: [Attempt]
        package var response: Response?
    }

    package struct Attempt: Codable, Hashable, Sendable {
        /// Counts from 1.
        package var number: Int
        package var started: Date
        package var durationSeconds: Double
        package var status: Int?
        /// libcurl's code, 0 when an answer came.
        package var curlCode: Int
        package var error: String?
    }

    package struct Response: Codable, Hashable, Sendable {
        package var status: Int
        package var headers: [[String]]
        /// The first 64 KiB.
        package var bodyBase64: String
        package var truncated: Bool
    }
}
