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
        /// If the service uses its last good configuration, because it could not use its files when it started: when
        /// that configuration was stored. `nil` otherwise.
        package var lastGood: Date?
        /// The scans of the store, without the texts of findings; `nil` before the first one has begun.
        package var scan: Scan?
        /// The push of the metrics to a collector; `nil` if the service pushes none.
        package var push: Push?
    }

    /// The push of the metrics to a collector.
    package struct Push: Codable, Hashable, Sendable {
        /// The time between two pushes.
        package var intervalSeconds: Double
        /// The time since the collector has accepted a push. Before that, the time since the service has begun to push.
        package var silentSeconds: Double
        /// When the collector accepted a push last; `nil` if it has accepted none since the service has begun to push.
        package var lastSuccess: Date?
        /// The number of attempts that failed, and of pushes that the queue refused, since the service was started.
        package var failures: Int
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
        /// Whether too little of the file system is free for a new request with a body of 64 KiB.
        package var diskFull: Bool
    }
}
