package import OfflineQueue

extension ControlMessage {
    /// The edits of requests, as the last segment of `/v1/queue/…` names them.
    package enum EditAction: String, CaseIterable, Sendable {
        case retry, hold, release, cancel
    }

    /// The body of `POST /v1/queue/retry`, `hold`, `release` and `cancel`, which edit many requests. Has either `ids` or
    /// `filter`.
    package struct Edit: Codable, Hashable, Sendable {
        /// Complete ids, at most ``ControlMessage/mostIDs``.
        package var ids: [String]?
        /// Selects the requests to edit. All of them are edited in one transaction.
        package var filter: Filter?
        /// For `retry`: whether the requests get new idempotency keys. Default false.
        package var newKey: Bool?
        /// With `filter`: whether the matching requests are only counted, not edited. Default false.
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

    /// The body of `POST /v1/requests/{id}/credential`.
    package struct Credential: Codable, Hashable, Sendable {
        /// The name of the credential.
        package var credential: String

        package init(_ name: String) {
            credential = name
        }
    }

    /// Conditions that a request must meet to be edited.
    ///
    /// A missing member accepts all values, except that a missing `state` stands for the states that the edit normally
    /// applies to, for example `held` for `release`.
    package struct Filter: Codable, Hashable, Sendable {
        package var state: [String]?
        package var host: String?
        /// The lane's label; empty selects lanes without a label.
        package var lane: String?
        package var tag: String?
        /// The id of the user who submitted the request. Callers without full access may only name their own.
        package var submitter: UInt32?

        package init(
            state: [String]?,
            host: String?,
            lane: String?,
            tag: String? = nil,
            submitter: UInt32? = nil
        ) {
            self.state = state
            self.host = host
            self.lane = lane
            self.tag = tag
            self.submitter = submitter
        }
    }

    /// The response to ``Edit`` with a filter.
    package struct EditedAll: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// The number of requests that were edited. In a dry run, the number that would be edited.
        package var done: Int
        /// The number of matching requests whose state does not allow the edit, or for whose retry there is no room. A
        /// dry run ignores the room.
        package var refused: Int
        /// Why there is no room for the first of the retries without room: `queue_full` or `quota_exceeded`.
        package var code: String?
        package var detail: String?
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
            /// The reason of the hold that the edit ended; `nil` if it ended none.
            package var endedHold: String?
            /// Why the request was not edited: `refused` or `unknown_request`.
            package var code: String?
            package var detail: String?
        }
    }

    /// The response to `POST /v1/queue/flush`.
    package struct Flushed: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// The number of requests of the selected lanes that are now being tried or wait for their turn.
        package var requests: Int
        /// The lanes with requests that were opened before the end of a server's `Retry-After`, at most 1000.
        package var openedLanes: [QueueStatistics.ClosedLane]
        /// Whether the whole queue is paused.
        package var queuePaused: Bool
        /// The paused lanes among the selected ones, at most 1000.
        package var pausedLanes: [QueueStatistics.PausedLane]
    }

    /// The response to `POST /v1/queue/pause` and `resume`.
    package struct Paused: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// Whether the lanes are paused now.
        package var paused: Bool
        /// The number of affected lanes.
        package var lanes: Int
        /// Whether any of the lanes, or the whole queue if all lanes are selected, was paused before.
        package var wasPaused: Bool
        /// Whether the whole queue is paused now.
        package var queuePaused: Bool
    }

    /// The body of an error response (RFC 9457).
    package struct ProblemDetails: Decodable, Hashable, Sendable {
        package var status: Int
        package var code: String
        package var detail: String
        /// For the code `wrong_offset`: the offset at which the next piece of the upload must start.
        package var offset: Int64?
        /// For the code `busy`: the connection class whose limit was reached, and that limit.
        package var `class`: String?
        package var limit: Int?
    }
}
