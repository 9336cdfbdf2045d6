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
