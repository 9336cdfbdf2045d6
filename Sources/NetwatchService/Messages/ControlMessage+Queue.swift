package import Foundation

extension ControlMessage {
    /// An edit of many requests: `POST /v1/queue/retry`, `hold`, `release` and `drop`. Has either `ids` or `filter`.
    package struct Edit: Codable, Hashable, Sendable {
        /// Complete ids, at most ``ControlMessage/mostIDs``.
        package var ids: [String]?
        /// Selects all matching requests, edited in one transaction.
        package var filter: Filter?
        /// For `retry`: whether the requests get a new idempotency key. Default false.
        package var newKey: Bool?
        /// With `filter`: whether the matching requests are only counted. Default false.
        package var dryRun: Bool?

        package init(ids: [String], newKey: Bool? = nil) {
            self.ids = ids
            self.newKey = newKey
        }

        package init(filter: Filter, newKey: Bool? = nil, dryRun: Bool? = nil) {
            self.filter = filter
            self.newKey = newKey
            self.dryRun = dryRun
        }
    }

    /// A filter for requests, as in a listing. Without members it selects every request that the edit usually applies
    /// to.
    package struct Filter: Codable, Hashable, Sendable {
        package var state: [String]?
        package var host: String?
        /// The lane's label; empty selects lanes without a label.
        package var lane: String?

        package init(state: [String]?, host: String?, lane: String?) {
            self.state = state
            self.host = host
            self.lane = lane
        }
    }

    /// The response to ``Edit`` with a filter.
    package struct EditedAll: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// The number of requests that were edited, or would be in a dry run.
        package var done: Int
        /// The number of matching requests in a state that the edit does not apply to.
        package var refused: Int
    }

    /// The response to ``Edit`` with ids: one result per id, in the order of the ids.
    package struct Edited: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var results: [Result]

        package struct Result: Codable, Hashable, Sendable {
            package var v = ControlMessage.version
            package var id: String
            package var done: Bool
            /// The state that the request is in now.
            package var state: String?
            /// Why the request was not edited: `refused` or `unknown_request`.
            package var code: String?
            package var detail: String?
        }
    }

    /// The response to `POST /v1/queue/flush`.
    package struct Flushed: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// The number of requests that are now being tried or wait for their turn.
        package var requests: Int
    }

    /// The lanes that `POST /v1/queue/pause` and `resume` apply to. Without members `pause` applies to the whole queue,
    /// and `resume` ends every pause.
    package struct Lanes: Codable, Hashable, Sendable {
        package var host: String?
        /// The lane's label; empty selects lanes without a label.
        package var lane: String?

        package init(host: String?, lane: String?) {
            self.host = host
            self.lane = lane
        }
    }

    /// The response to ``Lanes``.
    package struct Paused: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var paused: Bool
        /// The number of lanes that were affected.
        package var lanes: Int
    }

    /// The response to `GET /v1/queue/stats`.
    package struct Statistics: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var counts: [String: Int]
        /// The number of unfinished requests and their bytes, as counted for the limits.
        package var requests: Int
        package var bytes: Int64
        package var oldest: Date?
        package var lanes: Int
        /// Whether the whole queue is paused.
        package var paused: Bool
        /// The paused lanes, in the form that `resume` takes.
        package var pausedLanes: [Lanes]
        /// Lanes with requests that are closed temporarily, by a server's `Retry-After` or after failures.
        package var closedLanes: [ClosedLane]
        package var databaseBytes: Int64
        package var freeBytes: Int64
        /// The number of uploads that no request uses yet, and their bytes. Services of earlier versions send neither.
        package var stagedBodies: Int?
        package var stagedBytes: Int64?
    }

    /// A lane that is closed temporarily.
    package struct ClosedLane: Codable, Hashable, Sendable {
        package var host: String
        /// The lane's label; empty if it has none.
        package var lane: String
        package var until: Date
        /// The HTTP status of the response, if a server's `Retry-After` closed the lane.
        package var status: Int?
        /// The reason, for people.
        package var reason: String
    }

    /// An error response (RFC 9457).
    package struct ProblemDetails: Decodable, Hashable, Sendable {
        package var status: Int
        package var code: String
        package var detail: String
        package var offset: Int64?
        /// For the code `busy`: the connection class whose limit was reached, and that limit.
        package var `class`: String?
        package var limit: Int?
    }
}
