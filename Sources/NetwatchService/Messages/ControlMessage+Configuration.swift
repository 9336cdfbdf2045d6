package import Foundation

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
