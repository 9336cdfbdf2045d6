internal import Glibc
package import Logging
internal import NetwatchEventLoop
package import OfflineQueue

/// The configuration of the service.
package struct ServiceConfiguration: Sendable {
    /// The directory of the queue.
    package var stateDirectory: String
    /// The path of the control socket.
    package var socket: String
    /// The directory of the credential files; `nil` for none.
    package var credentials: String?
    /// The URL with which paths are probed for captive portals; `nil` for no probes.
    package var portalProbe: String?
    /// Looks up the groups of the access by their names; `nil` if there is none. Default: in the group database.
    package var lookUpGroup: SystemGroup.Lookup = {
        (name) throws(SystemError) in try SystemGroup(named: name)
    }
    /// Decides what each user may do with the control API.
    package var access = AccessPolicy()
    /// What the requests and uploads of each user without full access may use of the queue.
    package var quota = UserQuota()
    /// The maximum number of connections of each user without full access to the control socket.
    package var userConnections = ControlServer.Limits().userConnections
    /// The settings of the queue. The service itself sets the probe and the encryption key.
    package var queue: OfflineQueue.Configuration
    /// The time to live, the timeouts and the durability of requests that do not have their own.
    package var requestDefaults = EnqueueOptions()
    /// The path of the file with the encryption keys of the queue; `nil` for no encryption.
    package var encryptionKey: String?
    /// The lowest level to log.
    package var logLevel = Logger.Level.info
    /// The settings of hosts that do not have their own.
    package var hostDefaults = HostDefaults()
    /// The hosts to watch. Default: none.
    package var hosts: [WatchedHost] = []
    /// How long the outages of the hosts and their uptime of each day are kept. Default 365 days.
    package var historyRetention = HostHistory.defaultRetention
    /// What the service does when a host goes down and when it is up again. Default: nothing.
    package var hooks: [Hook] = []
    /// The push of the metrics to a collector. Default: none.
    package var metricsPush = MetricsPush()
    /// The port on which the status page is served; `nil` for none.
    package var web: WebAddress?
    /// The version of netwatch, for clients.
    package var version = ""
    /// What configuration files and environment variables have set. A reload compares it.
    package var values = ConfigurationValues()

    package init(stateDirectory: String, socket: String, credentials: String? = nil) {
        self.stateDirectory = stateDirectory
        queue = OfflineQueue.Configuration(directory: stateDirectory)
        queue.limits.namePrefix = "queue.limits."
        queue.limits.diskReserveName = "disk-reserve"
        queue.stopTimeout = .seconds(3)
        self.socket = socket
        self.credentials = credentials
    }

    /// How long the control server waits for its clients during a stop. The queue stops before this time ends, so that
    /// a client that waits for the first attempt of its request still gets the response that the request is stored.
    var stopGrace: Duration { queue.stopTimeout + queue.cancellationTimeout + .seconds(1) }
}

/// The values that configuration files and environment variables set, as TOML. Keys with their defaults are missing.
package struct ConfigurationValues: Hashable, Sendable {
    /// The values by the paths of their keys, such as `queue.inflight`. `host` and `hook` contain all tables of these
    /// arrays.
    var texts: [String: String] = [:]
    /// The values of files that environment variables replace, by the paths of their keys.
    var replaced: [String: String] = [:]
    /// The files that were read.
    var files: [String] = []
    /// The keys whose values have faults; `nil` if a part of a file could not be read or assigned, which may set
    /// any key.
    var faultyKeys: Set<String>? = []

    package init() {}

    /// All keys, in the order of the default file.
    static let keys =
        SettingTable.settings.map(\.path) + ConfigurationReader.ArrayTable.Kind.allCases.map(\.rawValue)

    /// Returns the keys whose values differ, in the order of the default file.
    func keys(differingFrom other: ConfigurationValues) -> [String] {
        Self.keys.filter { texts[$0] != other.texts[$0] }
    }

    /// Returns whether it is known what a key is set to, or that nothing sets it.
    func isKnown(_ key: String) -> Bool { texts[key] != nil || faultyKeys?.contains(key) == false }

    /// The values as one configuration file.
    var document: String {
        var text = "", table = ""
        for setting in SettingTable.settings {
            guard let value = texts[setting.path] else { continue }
            if setting.table != table {
                table = setting.table
                text += "[\(table)]\n"
            }
            text += "\(setting.name) = \(value)\n"
        }
        return text + ConfigurationReader.ArrayTable.Kind.allCases.compactMap { texts[$0.rawValue] }.joined()
    }
}

extension ConfigurationReader {
    /// What was read so far.
    var values: ConfigurationValues {
        var values = ConfigurationValues()
        values.texts = origins.mapValues(\.text)
        for table in tables { values.texts[table.kind.rawValue, default: ""] += table.text }
        values.replaced = replacedValues
        values.faultyKeys = faultyKeys
        return values
    }
}

extension ConfigurationReader.ArrayTable {
    /// The table as TOML.
    fileprivate var text: String {
        let lines = entries.map { "\(TOMLNode.Value.key($0.key)) = \($0.node.value.text)\n" }
        return "[[\(kind.rawValue)]]\n" + lines.joined()
    }
}

/// The push of the service's metrics to a collector.
package struct MetricsPush: Hashable, Sendable {
    /// The label of the lane of the pushes. Only the service can enqueue with it, but an import may contain it.
    package static let lane = "netwatch-metrics"
    /// The accepted values of ``interval``: 10 s to 1 h.
    static let acceptedIntervals: ClosedRange<Duration> = .seconds(10)...(.seconds(3600))
    /// The accepted values of ``timeToLive``: 1 min to 7 d.
    static let acceptedTimesToLive: ClosedRange<Duration> = .seconds(60)...(.seconds(7 * 86_400))
    /// The maximum length of ``instance``, in bytes.
    static let longestInstance = 255

    /// The URL of the collector; `nil` for no push.
    package var url: String?
    /// The time between two pushes. Default 60 s.
    package var interval = Duration.seconds(60)
    /// The name of the credential that the queue adds to each push; `nil` for none.
    package var credential: String?
    /// The name of this machine in the pushes; `nil` for its host name.
    package var instance: String?
    /// How long a push is tried. A newer push replaces it before. Default 1 h.
    package var timeToLive = Duration.seconds(3600)

    package init() {}

    /// ``instance``, or the host name as it is now.
    var instanceName: String { instance ?? Self.hostName }

    private static var hostName: String {
        // A name has at most 64 bytes on Linux.
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "localhost" }
        return name.withUnsafeBytes { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    /// Whether a text is accepted as ``instance``.
    static func isValidInstance(_ text: String) -> Bool {
        (1...longestInstance).contains(text.utf8.count)
            && text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }
}
