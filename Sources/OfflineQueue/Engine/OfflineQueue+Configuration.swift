package import ClientCore
internal import Foundation
internal import NetwatchEventLoop

extension OfflineQueue {
    /// The settings of a queue.
    ///
    /// ```swift
    /// var configuration = OfflineQueue.Configuration(directory: "/var/lib/myapp/queue")
    /// configuration.limits.bytes = 256 << 20
    /// configuration.rates = [try RateLimit(10, to: "api.example.com")]
    /// let queue = try await OfflineQueue(configuration: configuration)
    /// ```
    public struct Configuration: Hashable, Sendable {
        /// The path of the queue's directory.
        ///
        /// The directory and its missing parents are created with the permissions 0700. If other users can access an
        /// existing directory, its permissions are changed to 0700, provided that it is empty or contains a queue. Any
        /// other directory that they can access is refused.
        public var directory: String
        /// The size limits of the queue.
        public var limits = QueueLimits()
        /// The minimum delay after a failure: 1 ms to 366 days. Default 2 s.
        ///
        /// The actual delay is random, between this minimum and an upper bound. The bound doubles with each failure in
        /// a row, up to ``backoffCap``.
        public var backoffBase: Duration = Backoff.defaultBase
        /// The maximum delay after failures: ``backoffBase`` to 366 days. Default 15 min.
        ///
        /// The queue also tries an unreachable host at this interval, in case the path monitor is wrong. A server's
        /// `Retry-After` may close a lane for longer, up to 24 h.
        public var backoffCap: Duration = Backoff.defaultCap
        /// The maximum number of requests in flight in each parallel lane: 1 to 65,536. Default 8. A FIFO lane sends
        /// one request at a time.
        public var inflightPerLane = 8
        /// The maximum number of requests in flight to each origin (scheme, host and port), in all its lanes together:
        /// 1 to 65,536. Default 8. After signs of overload, the queue sends fewer at a time.
        public var inflightPerOrigin = 8
        /// The maximum number of requests in flight in the whole queue: 1 to 65,536. Default 32. After an outage, the
        /// limit is lower at first; see <doc:BeingAGoodCitizen>.
        ///
        /// If the maximum is 2 or more, a quarter of it, but at least 1, is reserved for origins that have no request
        /// in flight.
        public var inflight = 32
        /// The maximum of a random delay before the first requests after an outage, and after the start of the queue:
        /// 0 s to 366 days. Default 0 s, which means no delay.
        ///
        /// If many machines lose the same network, or restart after the same power failure, each of them waits for a
        /// time between 0 s and this maximum. Their requests then do not arrive all at once.
        /// ``OfflineQueue/flush(host:lane:)`` ends the delay. While requests wait for it, their reason is
        /// ``QueuedReason/paced``.
        public var reconnectSpread: Duration = .zero
        /// The URL with which paths are probed for captive portals. Default `nil`: no probes.
        ///
        /// The URL must be an `http` URL to which the server always responds with 204, or with 200 and no body. You can
        /// use a server of your own. A portal sends another response; see `CaptivePortalProbe` in ClientCore.
        ///
        /// Before the queue sends the first request over plain HTTP to a host, and again after each change of the path
        /// to the host, it requests this URL over the same path. While a portal responds, requests over plain HTTP to
        /// the host wait with the reason ``QueuedReason/captivePortal(page:)``, and use up no attempts. The path is
        /// probed again after 2 to 60 s. Requests over HTTPS do not wait. If the probe gets no usable response,
        /// requests are sent. Paths to this machine itself are not probed.
        public var captivePortalProbe: String?
        /// The maximum rates of requests: one for all requests together, and one for each host. Default: none.
        public var rates: [RateLimit] = []
        /// The weights of hosts: 1 to 100. Default: 1 for each host.
        ///
        /// While requests to several hosts wait for slots, a host of weight 3 gets three slots where one of weight 1
        /// gets one, up to ``inflightPerOrigin``. The weight applies to each origin of the host. The weights have no
        /// effect while slots are free. The keys are names or addresses without a port; patterns are refused.
        public var hostWeights: [String: Int] = [:]
        /// The weights of lanes by label (``EnqueueOptions/lane``): 1 to 100. Default: 1 for each lane. They apply
        /// among the lanes of an origin.
        public var laneWeights: [String: Int] = [:]
        /// The statuses after which requests are retried or given up. Default: none, so each status has its usual meaning; see
        /// <doc:WhatFailuresMean#Response-received>.
        ///
        /// The first rules that contain a status decide: ``EnqueueOptions/statusRules``, then ``laneStatusRules``,
        /// ``hostStatusRules`` and these. They apply to the next responses, also to those of requests that wait already.
        public var statusRules = StatusRules()
        /// The rules for statuses of hosts. Default: none. The keys are names or addresses without a port; patterns are
        /// refused.
        public var hostStatusRules: [String: StatusRules] = [:]
        /// The rules for statuses of lanes by label (``EnqueueOptions/lane``). Default: none.
        public var laneStatusRules: [String: StatusRules] = [:]
        /// The names of the interfaces whose connections are metered, in addition to those of mobile networks: 1 to 15
        /// bytes each without spaces, `/` and `:`. `*` stands for any number of characters, as in `wlan*`. Default:
        /// none.
        ///
        /// Requests with ``RequestConstraints/isUnmetered`` wait while the path to their host leads over one of these
        /// interfaces. Name the interface of the route: for a tunnel or a bridge, name the tunnel or the bridge itself.
        /// Paths to the addresses of this machine itself are never metered. Linux does not know whether a connection is
        /// metered.
        public var meteredInterfaces: [String] = []
        /// The maximum time for which ``OfflineQueue/stop()`` waits for requests in flight: 0 s to 60 s. Default 10 s.
        public var stopTimeout: Duration = .seconds(10)

        /// The time between two scans of the store: 0 s to 366 days; 0 s means no scans. Default a day.
        ///
        /// A scan reads the whole database and all bodies in the background, and finds damage before a request needs
        /// the damaged part. It takes about a tenth of the disk's time, and delays no other operation. After a restart,
        /// it continues where it stopped. ``OfflineQueue/scan`` has its result.
        ///
        /// While the database has damage, the queue continues, but it cannot be opened again before
        /// ``OfflineQueue/setAside(directory:evenIfSound:encryptionKeyFile:)`` is called.
        public var scanInterval: Duration = .seconds(86_400)

        /// The times of scans.
        package var scanTiming = ScanTiming()

        /// How long, and how many, finished requests are kept.
        package var retention = StoreSettings.Retention()

        /// The time limit for a call of a credential's provider, which is its function, adapter or interceptor: 1 ms to
        /// 1 h. Default 30 s. A request waits for the call for at most 2 s. Then the request is postponed, and its next
        /// attempt uses the result of the call.
        public var credentialTimeout: Duration = .seconds(30)

        /// The maximum time for which an attempt occupies its slot while the provider of its credential is called.
        /// After it, the request is postponed, and the call continues until ``credentialTimeout``. Default 2 s.
        package var credentialWait: Duration = .seconds(2)

        /// The path of a file with the keys that encrypt stored requests. Default `nil`: no encryption.
        ///
        /// The file has one key in each line: 64 hexadecimal digits, as `openssl rand -hex 32` prints them. Empty lines
        /// and lines that begin with `#` are ignored. The first key encrypts, and all keys, at most 16, decrypt. The
        /// file must be a regular file of this user or of root, at most 4095 bytes long, and other users must not have
        /// access to it. It is read when the queue opens. See <doc:EncryptionAtRest>.
        public var encryptionKeyFile: String?

        /// The number of retries per second that are always permitted, for each origin. Tests whose servers fail often
        /// raise it, because with the default, the last of many failed requests is sent minutes later.
        package var retryRate = 1.0

        /// The intervals at which requests that are held for ``HoldReason/auth`` are tried again: 5 minutes, and further ones
        /// that double up to an hour.
        package var authRetries = Scheduler.Settings().authRetries

        /// Whether refusals are confirmed before requests are given up because of them. Tests whose servers refuse requests
        /// at once turn it off.
        package var confirmsRefusals = true

        /// The versions of HTTP of the origins. ``EnqueueOptions/httpVersion`` of a request replaces them. Default: none.
        package var httpVersions: [Origin: HTTPVersion] = [:]

        /// The time after which stored requests that could not be encrypted with the current key are tried again. The
        /// same as the interval of other background work: 60 s.
        package var resealInterval: Duration = Sweeper.longestPause

        /// How long a lane waits for the first state of its gate. Default 2.5 s.
        package var gateTimeout: Duration = Scheduler.Settings().gateTimeout

        /// How long attempts continue after the path to their host was lost. Default 3 s.
        package var lossGrace: Duration = Scheduler.Settings().lossGrace

        /// The maximum time that a call of ``OfflineQueue/send(_:options:)`` waits for a slot before an attempt. Default
        /// 1 s. A slot is often free after milliseconds, when the outcome of another attempt is stored.
        package var slotTimeout: Duration = .seconds(1)

        /// The maximum time for which ``OfflineQueue/stop()`` waits until the outcomes of cancelled attempts are stored.
        /// Default 1 s. On a slow disk, storing the outcomes may take longer. The requests then stay in flight in the
        /// store, and the next start recovers them.
        ///
        /// Only now the client knows whether part of a request was sent. A recovered attempt counts, and its request is
        /// held as ambiguous if it must not be sent twice, although nothing of it may have been sent.
        package var cancellationTimeout: Duration = .seconds(1)

        /// Creates a configuration with the defaults.
        public init(directory: String) {
            self.directory = directory
        }
    }
}
