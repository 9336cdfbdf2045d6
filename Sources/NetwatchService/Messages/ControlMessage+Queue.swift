package import Foundation

extension ControlMessage {
    /// An edit of many requests: `POST /v1/queue/retry`, `hold`, `release` and `drop`. Either `ids` or `filter`.
    package struct Edit: Codable, Hashable, Sendable {
        /// Whole ids, at most ``ControlMessage/mostIDs``.
        package var ids: [String]?
        /// All requests that match, however many, in one transaction.
        package var filter: Filter?
        /// For `retry`: whether they get another idempotency key. Default false.
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

    /// Requests by what a listing can be filtered by. Without members: every request that the edit is usually for.
    package struct Filter: Codable, Hashable, Sendable {
        package var state: [String]?
        package var host: String?
        /// Empty for lanes without a label.
        package var lane: String?

        package init(state: [String]?, host: String?, lane: String?) {
            self.state = state
            self.host = host
            self.lane = lane
        }
    }

    /// The answer to ``Edit`` with a filter.
    package struct EditedAll: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// How many requests were edited, or would be.
        package var done: Int
        /// How many match and are in a state that the edit does not apply to.
        package var refused: Int
    }

    /// The answer to ``Edit`` with ids: one result for each id, in their order.
    package struct Edited: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var results: [Result]

        package struct Result: Codable, Hashable, Sendable {
            package var v = ControlMessage.version
            package var id: String
            package var done: Bool
            /// The state that it is in now.
            package var state: String?
            /// Why nothing was done: `refused` or `unknown_request`.
            package var code: String?
            package var detail: String?
        }
    }

    /// `POST /v1/queue/flush`.
    package struct Flushed: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// How many requests are now being tried, or wait their turn to be.
        package var requests: Int
    }

    /// Which lanes `POST /v1/queue/pause` and `resume` concern; without members the whole queue, and for `resume`
    /// every pause.
    package struct Lanes: Codable, Hashable, Sendable {
        package var host: String?
        /// Empty for lanes without a label.
        package var lane: String?

        package init(host: String?, lane: String?) {
            self.host = host
            self.lane = lane
        }
    }

    /// The answer to ``Lanes``.
    package struct Paused: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var paused: Bool
        /// How many lanes it concerned.
        package var lanes: Int
    }

    /// `GET /v1/queue/stats`.
    package struct Statistics: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var counts: [String: Int]
        /// Requests on their way, and their bytes, as the limits count them.
        package var requests: Int
        package var bytes: Int64
        package var oldest: Date?
        package var lanes: Int
        /// Whether the whole queue is.
        package var paused: Bool
        /// Lanes that are, as ``Lanes`` names them to go on.
        package var pausedLanes: [Lanes]
        /// Lanes with requests that are closed for a time: by a server's `Retry-After`, or after failures.
        package var closedLanes: [ClosedLane]
        package var databaseBytes: Int64
        package var freeBytes: Int64
        /// Uploads that no request uses yet, and their bytes. A service of an earlier version has neither.
        package var stagedBodies: Int?
        package var stagedBytes: Int64?
    }

    /// A lane that is closed for a time.
    package struct ClosedLane: Codable, Hashable, Sendable {
        package var host: String
        /// Empty for a lane without a label.
        package var lane: String
        package var until: Date
        /// The status of the answer, if a server's `Retry-After` closed it.
        package var status: Int?
        /// For people.
        package var reason: String
    }

    /// An error: RFC 9457.
    package struct ProblemDetails: Decodable, Hashable, Sendable {
        package var status: Int
        package var code: String
        package var detail: String
        package var offset: Int64?
        /// Of a `busy`: the class of connections whose limit was reached, and that limit.
        package var `class`: String?
        package var limit: Int?
    }
}
