internal import ClientCore
internal import Logging
internal import OfflineQueue

/// All keys of the configuration file, in the order of the default file. The keys of `[[host]]` are in ``HostTable``,
/// those of `[[hook]]` in ``HookTable``. The reader, `config default` and `config show` use this table, so that they
/// cannot disagree.
enum SettingTable {
    static let settings: [Setting] = [
        service, access, quota, web, metrics, queueSettings, hosts, history,
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
