internal import ClientCore
internal import Logging
internal import OfflineQueue

/// All keys of the configuration file, in the order of the default file. The keys of `[[host]]` are in ``HostTable``,
/// those of `[[hook]]` in ``HookTable``. The reader, `config default` and `config show` use this table, so that they
/// cannot disagree.
enum SettingTable {
    static let settings: [Setting] = [
        service, access, quota, web, metrics, queue, statuses, requests, limits, retention, hosts, history,
    ].flatMap { $0 }

    /// The paths of the keys that a reload does not change.
    static var restartKeys: [String] { settings.filter { !$0.isReloadable }.map(\.path) }

    private static let service: [Setting] = [
        .text(
            "service",
            "log-level",
            accepted: "one of " + Logger.Level.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", "),
            example: Logger.Level.info.rawValue,
            isDefault: true,
            "The lowest level to log."
        ) { configuration, text in
            Logger.Level(rawValue: text).map { configuration.logLevel = $0 }
        }.reloadable(),
        .text(
            "service",
            "portal-probe",
            accepted: "an http URL that responds with 204",
            example: "http://example.com/generate_204",
            """
            The URL that is requested before plain http requests are sent on a new path. While a captive portal \
            responds, the requests wait. Default: no such probe.
            """
        ) { configuration, text in
            guard (try? CaptivePortalProbe.generate204(text)) != nil else { return nil }
            configuration.portalProbe = text
            return ()
        }.url(),
    ]

    private static let access: [Setting] = [
        .groups(
            "submit-groups",
            \.access.submitGroups,
            "The groups whose members may submit requests, and read and edit their own. Root and the user of the "
                + "service may do everything."
        ).reloadable(),
        .groups(
            "read-groups",
            \.access.readGroups,
            "The groups whose members may read the state of the service and, of each request, its id, state and host."
        ).reloadable(),
    ]

    private static let quota: [Setting] = [
        .integer(
            "access.quota",
            "requests",
            1...Int.max,
            \.quota.requests,
            "The maximum number of unfinished requests of each user. The keys of this table do not apply to root and "
                + "the user of the service."
        ).reloadable(),
        .size(
            "access.quota",
            "bytes",
            \.quota.bytes,
            "The maximum size of all unfinished requests of each user."
        ).reloadable(),
        .size(
            "access.quota",
            "staged-bytes",
            \.quota.stagedBytes,
            "The maximum size of a user's uploads that no request uses yet. Bodies over 64 KiB of the user's requests "
                + "that wait for room count, too."
        ).reloadable(),
        .integer(
            "access.quota",
            "connections",
            1...ControlServer.Limits().userConnections(within: .max),
            \.userConnections,
            "The maximum number of connections of each user to the control socket."
        ).reloadable(),
    ]

    private static let web: [Setting] = [
        .text(
            "web",
            "listen",
            accepted: WebAddress.acceptedForms,
            example: "127.0.0.1:9317",
            """
            The loopback address and port of the status page and the metrics. Every user of this machine can read \
            them. Default: none.
            """
        ) { configuration, text in
            WebAddress(text).map { configuration.web = $0 }
        }
    ]

    // MARK: Metrics

    /// ``ConfigurationReader`` checks the URL and the name of the credential, because it reports why they are refused.
    private static let metrics: [Setting] = [
        .text(
            "metrics",
            "push-url",
            accepted: "an http or https URL without secrets",
            example: "https://collector.example.com/v1/metrics",
            """
            The whole URL of a collector that accepts OTLP over HTTP. The service pushes its metrics to it, through the \
            queue. Default: none.
            """
        ) { configuration, text in
            configuration.metricsPush.url = text
            return ()
        }.url().reloadable(),
        .duration(
            "metrics",
            "push-interval",
            MetricsPush.acceptedIntervals,
            \.metricsPush.interval,
            "The time between two pushes."
        ).reloadable(),
        .text(
            "metrics",
            "push-credential",
            accepted: "the name of a credential",
            example: "collector",
            "The name of the credential that is added to each push. Default: none."
        ) { configuration, text in
            configuration.metricsPush.credential = text
            return ()
        }.reloadable(),
        .text(
            "metrics",
            "push-instance",
            accepted: "a name of 1 to \(MetricsPush.longestInstance) bytes without control characters",
            example: "gateway-17.example.com",
            "The name of this machine in the pushes. Default: the host name."
        ) { configuration, text in
            guard MetricsPush.isValidInstance(text) else { return nil }
            configuration.metricsPush.instance = text
            return ()
        }.reloadable(),
        .duration(
            "metrics",
            "push-ttl",
            MetricsPush.acceptedTimesToLive,
            \.metricsPush.timeToLive,
            "The time for which the queue tries to deliver a push. A newer push replaces it before."
        ).reloadable(),
    ]

    // MARK: Queue

    private static let acceptedHosts = "a host is a name or an address, without a scheme, a port or `*`"
    private static let inflight = OfflineQueue.Configuration.inflightRange
    private static let longest = RequestChecks.longestTime

    private static let queue: [Setting] = [
        .integer(
            "queue",
            "inflight",
            inflight,
            \.queue.inflight,
            "The maximum number of requests in flight."
        ).reloadable(),
        .integer(
            "queue",
            "inflight-per-origin",
            inflight,
            \.queue.inflightPerOrigin,
            "The maximum number of requests in flight to each scheme, host and port."
        ).reloadable(),
        .integer(
            "queue",
            "inflight-per-lane",
            inflight,
            \.queue.inflightPerLane,
            "The maximum number of requests in flight in each lane that is not FIFO."
        ).reloadable(),
        .duration(
            "queue",
            "backoff-base",
            .milliseconds(1)...longest,
            \.queue.backoffBase,
            "The minimum delay after a failure. The maximum doubles with each failure in a row."
        ).reloadable(),
        .duration(
            "queue",
            "backoff-cap",
            .milliseconds(1)...longest,
            \.queue.backoffCap,
            "The maximum delay after failures, at least `backoff-base`."
        ).reloadable(),
        .duration(
            "queue",
            "reconnect-spread",
            .zero...longest,
            \.queue.reconnectSpread,
            "The maximum random delay before the first requests after an outage or a start."
        ).reloadable(),
        .duration(
            "queue",
            "stop-timeout",
            .zero...Duration.seconds(60),
            \.queue.stopTimeout,
            "The maximum time for which a stop of the service waits for requests in flight."
        ).reloadable(),
        .duration(
            "queue",
            "credential-timeout",
            .milliseconds(1)...Duration.seconds(3600),
            \.queue.credentialTimeout,
            "The time limit for reading a credential."
        ).reloadable(),
        .duration(
            "queue",
            "scan-interval",
            .zero...longest,
            \.queue.scanInterval,
            "The time between two scans of the database and of all bodies for damage, \"0s\" for none."
        ).reloadable(),
        .texts(
            "queue",
            "metered-interfaces",
            accepted: "an array of interface names; each is \(MeteredInterfaces.accepted)",
            "The interfaces whose connections are metered, in addition to mobile networks."
        ) { configuration, names in
            guard names.allSatisfy(MeteredInterfaces.isValid) else { return nil }
            configuration.queue.meteredInterfaces = names
            return ()
        },
        .texts(
            "queue",
            "rates",
            accepted:
                "an array of rates like `\"10/s\"` or `\"example.com=30/m,burst=5\"`, with the units s, m and h, "
                + "one for each host; \(acceptedHosts)",
            "The maximum rates of requests, for the whole queue or for one host."
        ) { configuration, texts in
            let rates = texts.compactMap { try? RateLimit(parsing: $0) }
            let hosts = Set(rates.map { $0.host?.lowercased() ?? "" })
            guard rates.count == texts.count, hosts.count == rates.count else { return nil }
            configuration.queue.rates = rates
            return ()
        }.ofHosts().reloadable(),
        .weights(
            "queue",
            "host-weights",
            accepted: "a table of hosts and integers from 1 to 100; \(acceptedHosts)",
            "The weights by which waiting hosts share the slots."
        ) { configuration, weights in
            let hosts = weights.keys.compactMap { try? Origin.configuredHost($0) }
            guard Set(hosts).count == weights.count else { return nil }
            configuration.queue.hostWeights = weights
            return ()
        }.ofHosts().reloadable(),
        .weights("queue", "lane-weights", "The weights of lanes, by label, among the lanes of their origin.")
        {
            configuration,
            weights in
            configuration.queue.laneWeights = weights
            return ()
        }.reloadable(),
    ]

    /// The statuses after which requests are retried or given up.
    private static let statuses: [Setting] = [
        .statuses(
            "queue",
            "retry-statuses",
            \.queue.statusRules.retry,
            "The statuses of responses after which a request is retried. Lists of the request, of its lane and of its "
                + "host take precedence. A status in no list has its usual meaning."
        ).reloadable(),
        .statuses(
            "queue",
            "dead-statuses",
            \.queue.statusRules.dead,
            "The statuses of responses after which a request is given up at once. Lists of the request, of its lane and "
                + "of its host take precedence. A status in no list has its usual meaning."
        ).reloadable(),
        .statuses(
            "queue",
            "host-retry-statuses",
            of: "hosts",
            \.queue.hostStatusRules,
            \.retry,
            "`retry-statuses` of hosts.",
            key: { try? Origin.configuredHost($0) }
        ).ofHosts().reloadable(),
        .statuses(
            "queue",
            "host-dead-statuses",
            of: "hosts",
            \.queue.hostStatusRules,
            \.dead,
            "`dead-statuses` of hosts.",
            key: { try? Origin.configuredHost($0) }
        ).ofHosts().reloadable(),
        .statuses(
            "queue",
            "lane-retry-statuses",
            of: "labels",
            \.queue.laneStatusRules,
            \.retry,
            "`retry-statuses` of lanes, by label."
        ).reloadable(),
        .statuses(
            "queue",
            "lane-dead-statuses",
            of: "labels",
            \.queue.laneStatusRules,
            \.dead,
            "`dead-statuses` of lanes, by label."
        ).reloadable(),
    ]

    /// The defaults of requests that clients submit.
    private static let requests: [Setting] = [
        .duration(
            "queue",
            "ttl",
            .milliseconds(1)...longest,
            \.requestDefaults.timeToLive,
            "The time for which the queue tries to deliver a request, unless the request has its own."
        ).reloadable(),
        .duration(
            "queue",
            "connect-timeout",
            AttemptTimeouts.range,
            \.requestDefaults.timeouts.connect,
            "The time limit of each attempt for name lookup, connecting and TLS handshake together, unless the request "
                + "has its own."
        ).reloadable(),
        .duration(
            "queue",
            "response-timeout",
            AttemptTimeouts.range,
            \.requestDefaults.timeouts.response,
            "The time limit of each attempt between the end of the request and the first byte of the response, unless "
                + "the request has its own."
        ).reloadable(),
        .text(
            "queue",
            "durability",
            accepted: "one of " + Durability.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", "),
            example: EnqueueOptions().durability.rawValue,
            isDefault: true,
            """
            What an accepted request survives, unless the request has its own durability. `full`: a power failure. \
            `normal`: a crash of the service.
            """
        ) { configuration, text in
            Durability(rawValue: text).map { configuration.requestDefaults.durability = $0 }
        }.reloadable(),
    ]

    private static let limits: [Setting] = [
        .integer(
            "queue.limits",
            "requests",
            1...Int.max,
            \.queue.limits.requests,
            "The maximum number of unfinished requests."
        ).reloadable(),
        .size("queue.limits", "bytes", \.queue.limits.bytes, "The maximum size of all unfinished requests.")
            .reloadable(),
        .size(
            "queue.limits",
            "disk-reserve",
            \.queue.limits.diskReserve,
            "The space that new requests leave free on the file system."
        ).reloadable(),
        .share(
            "queue.limits",
            "lane-share",
            \.queue.limits.laneShare,
            "The share of `requests` and `bytes` that one lane may use."
        ).reloadable(),
    ]

    private static let retention: [Setting] = [
        .duration(
            "queue.retention",
            "done",
            shortestRetention...longest,
            \.queue.retention.done,
            "How long delivered, dropped and replaced requests are kept."
        ).reloadable(),
        .integer(
            "queue.retention",
            "done-requests",
            1...Int.max,
            \.queue.retention.doneCount,
            "The maximum number of delivered, of dropped and of replaced requests that are kept for each user."
        ).reloadable(),
        .duration(
            "queue.retention",
            "dead",
            shortestRetention...longest,
            \.queue.retention.dead,
            "How long dead requests are kept, with their bodies."
        ).reloadable(),
        .size(
            "queue.retention",
            "bytes",
            \.queue.retention.bytes,
            "The maximum size of all finished requests. Beyond it, the oldest ones of the user with most bytes are "
                + "removed."
        ).reloadable(),
    ]

    /// Clients need time to read the outcome of a request.
    private static let shortestRetention = Duration.seconds(60)

    // MARK: Hosts

    private static let hosts: [Setting] = [
        .duration(
            "defaults",
            "interval",
            WatchedHost.acceptedIntervals,
            \.hostDefaults.interval,
            "The time between two probes of a host, ±10 %."
        ).reloadable(),
        .duration(
            "defaults",
            "timeout",
            WatchedHost.acceptedTimeouts,
            \.hostDefaults.timeout,
            "The time limit of a probe."
        ).reloadable(),
        .integer(
            "defaults",
            "fall",
            WatchedHost.acceptedThresholds,
            \.hostDefaults.fall,
            "The number of failed probes in a row after which a host is down."
        ).reloadable(),
        .integer(
            "defaults",
            "rise",
            WatchedHost.acceptedThresholds,
            \.hostDefaults.rise,
            "The number of successful probes in a row after which a host is up again."
        ).reloadable(),
    ]

    private static let history: [Setting] = [
        .duration(
            "history",
            "retention",
            HostHistory.acceptedRetention,
            \.historyRetention,
            "How long the outages and the uptime of each day are kept."
        ).reloadable()
    ]
}
