internal import ClientCore
internal import OfflineQueue

/// The keys of the table `[queue]` and of its tables.
extension SettingTable {
    static let queueSettings: [Setting] = queue + statuses + requests + limits + retention

    private static let acceptedHosts = "a host is a name or an address, without a scheme, a port or `*`"
    private typealias Accepted = OfflineQueue.Configuration.Accepted
    /// The accepted weights in words: `1 to 100`.
    static let weightForms = "\(Accepted.weights.lowerBound) to \(Accepted.weights.upperBound)"
    private static let longest = RequestChecks.longestTime

    private static let queue: [Setting] = [
        .integer(
            "queue",
            "inflight",
            Accepted.inflight,
            \.queue.inflight,
            "The maximum number of requests in flight."
        ).reloadable(),
        .integer(
            "queue",
            "inflight-per-origin",
            Accepted.inflight,
            \.queue.inflightPerOrigin,
            "The maximum number of requests in flight to each scheme, host and port."
        ).reloadable(),
        .integer(
            "queue",
            "inflight-per-lane",
            Accepted.inflight,
            \.queue.inflightPerLane,
            "The maximum number of requests in flight in each lane that is not FIFO."
        ).reloadable(),
        .duration(
            "queue",
            "backoff-base",
            Accepted.backoff,
            \.queue.backoffBase,
            "The minimum delay after a failure. The maximum doubles with each failure in a row."
        ).reloadable(),
        .duration(
            "queue",
            "backoff-cap",
            Accepted.backoff,
            \.queue.backoffCap,
            "The maximum delay after failures, at least `backoff-base`."
        ).reloadable(),
        .duration(
            "queue",
            "reconnect-spread",
            Accepted.reconnectSpread,
            \.queue.reconnectSpread,
            "The maximum random delay before the first requests after an outage or a start."
        ).reloadable(),
        .duration(
            "queue",
            "stop-timeout",
            Accepted.stopTimeout,
            \.queue.stopTimeout,
            "The maximum time for which a stop of the service waits for requests in flight."
        ).reloadable(),
        .duration(
            "queue",
            "credential-timeout",
            Accepted.credentialTimeout,
            \.queue.credentialTimeout,
            "The time limit for reading a credential."
        ).reloadable(),
        .duration(
            "queue",
            "scan-interval",
            Accepted.scanInterval,
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
            accepted: "a table of hosts and integers from \(weightForms); \(acceptedHosts)",
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
            "How long delivered, cancelled and replaced requests are kept."
        ).reloadable(),
        .integer(
            "queue.retention",
            "done-requests",
            1...Int.max,
            \.queue.retention.doneCount,
            "The maximum number of delivered, of cancelled and of replaced requests that are kept for each user."
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
}
