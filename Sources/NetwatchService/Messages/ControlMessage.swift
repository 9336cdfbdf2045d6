package import Foundation
package import OfflineQueue

/// The JSON bodies of the control API. Clients ignore unknown members; the service rejects them.
package enum ControlMessage {
    /// The version that every response carries as `v`.
    package static let version = 1

    /// The longest request body in a single message: 1 MiB. Longer bodies are uploaded in pieces.
    package static let maximumBodyBytes = 1 << 20

    /// The longest message: 1.5 MiB. A body in Base64 is a third longer; the rest is for the other members.
    package static let maximumMessageBytes = maximumBodyBytes * 3 / 2

    /// The longest piece of an upload: 1 MiB.
    package static let maximumPieceBytes = 1 << 20

    /// The maximum number of ids in one message.
    package static let mostIDs = 10_000

    /// The maximum number of requests or names in one response.
    package static let longestPage = 1000

    /// The approximate maximum size of the requests in one response: 1 MiB. A response lists at least one request, even
    /// if that is larger.
    package static let longestPageBytes = 1 << 20

    /// The longest time for which a client can ask the service to wait before it responds: 300 s.
    package static let longestWait: Duration = .seconds(300)

    package static var encoder: JSONEncoder { QueueJSON.encoder }
    package static var decoder: JSONDecoder { QueueJSON.decoder }
}

extension ControlMessage {
    /// A response that has the members of a value, and the version.
    package struct Versioned<Value: Encodable & Sendable>: Encodable, Sendable {
        private let value: Value

        package init(_ value: Value) { self.value = value }

        private enum CodingKeys: CodingKey {
            case v
        }

        package func encode(to encoder: any Encoder) throws {
            try value.encode(to: encoder)
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(ControlMessage.version, forKey: .v)
        }
    }

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
        package var counts: QueueCounts
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

extension ControlMessage {
    /// The response to `GET /v1/configuration`: the configuration files and variables as they are now, compared with
    /// the configuration that the service uses.
    package struct Configuration: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// The path of the main file, which may be missing.
        package var path: String
        /// The faults because of which a reload would be refused.
        package var faults: [String]
        /// The keys that a reload would change. `host` and `hook` stand for all tables of these names.
        package var reloadKeys: [String]
        /// The keys that only a restart would change.
        package var restartKeys: [String]
        /// Why the service uses its last good configuration; `nil` if it does not.
        package var lastGood: LastGood?
        /// Why the configuration in use could not be stored as the last good one; `nil` if it was stored.
        package var keepingFailure: String?
    }

    /// The start with the last good configuration.
    package struct LastGood: Codable, Hashable, Sendable {
        /// When the configuration was stored.
        package var kept: Date
        /// The faults of the files and variables at the start.
        package var faults: [String]
        /// The keys without a fault whose values were ignored at the start, because they differ or are no longer set.
        package var ignoredKeys: [String]
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

    /// The last reload of the configuration. The faults are left out, because they are for users with full access.
    package struct LastReload: Codable, Hashable, Sendable {
        package var time: Date
        /// Whether the configuration had faults, so that the service kept the earlier one.
        package var refused: Bool
    }
}
