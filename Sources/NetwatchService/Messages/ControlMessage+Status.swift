package import Foundation

extension ControlMessage {
    /// The response to `GET /v1/status`.
    package struct Status: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// The version of the service.
        package var version: String
        package var pid: Int32
        package var started: Date
        package var network: Network
        /// The number of addresses whose path only the lookup of all addresses once a minute has corrected.
        package var auditCorrections: Int
        /// The number of watched hosts in each state: `up`, `degraded`, `down` and `unknown`.
        package var hosts: [String: Int]
        package var queue: Queue
        /// The last reload of the configuration; `nil` if there was none.
        package var reload: LastReload?
    }

    /// The last reload of the configuration. The faults are left out, because they are for users with full access.
    package struct LastReload: Codable, Hashable, Sendable {
        package var time: Date
        /// Whether the configuration had faults, so that the service kept the earlier one.
        package var refused: Bool
    }

    /// The response to `POST /v1/reload`.
    package struct Reloaded: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// The number of watched hosts.
        package var hosts: Int
        /// The keys whose new values apply only after a restart.
        package var restartKeys: [String]
        /// The keys whose new values in files have no effect, because environment variables replace them.
        package var replacedKeys: [String]
    }

    /// The path of this machine to the public Internet.
    package struct Network: Codable, Hashable, Sendable {
        /// `reachable`, `not_reachable` or `unknown`.
        package var state: String
        package var interface: String?
        package var source: String?
        package var gateway: String?
        /// Why the state is not `reachable`.
        package var reason: String?
    }

    /// The queue in short. `GET /v1/queue/stats` has more.
    package struct Queue: Codable, Hashable, Sendable {
        /// The number of requests in each state.
        package var counts: [String: Int]
        /// The waiting requests and their size.
        package var requests: Int
        package var bytes: Int64
        /// When the oldest waiting request was accepted.
        package var oldest: Date?
        package var paused: Bool
    }
}
