internal import Foundation
internal import NetworkReachability
internal import OfflineQueue

/// The metrics of the service. Hosts are labelled by their configured names, so that the number of series is bounded.
struct ServiceMetrics {
    private var output = MetricList()

    /// The metrics.
    var metrics: [Metric] { output.metrics }

    init(
        version: String,
        isConfigurationCurrent: Bool,
        network: ControlMessage.Network,
        netlink: PathMonitor.Statistics,
        hosts: [HostSnapshot],
        queue: QueueStatistics,
        scan: QueueScan,
        activity: QueueMeter.Values,
        commits: DurationHistogram,
        pushes: PushMeter.Values,
        process: ProcessUsage,
        now: HostTracker.Moment = .now
    ) {
        output.add("netwatch_build_info", .gauge, "The version of netwatch.", [(["version": version], 1)])
        output.add(
            "netwatch_configuration_last_load_successful",
            .gauge,
            "Whether the last start or reload applied the configuration files. If not, an earlier configuration is used.",
            isConfigurationCurrent ? 1 : 0
        )
        add(network)
        add(netlink)
        add(hosts)
        add(queue)
        add(scan)
        add(activity)
        output.add(
            "netwatch_store_commit_duration_seconds",
            "The duration of the transactions of the queue, from the first statement to the end of the sync.",
            commits
        )
        add(pushes, now)
        add(process)
    }

    private mutating func add(_ network: ControlMessage.Network) {
        output.add(
            "netwatch_network_reachable",
            .gauge,
            "Whether this machine has a path to the public Internet. Missing while that is unknown.",
            network.state == "unknown" ? nil : network.state == "reachable" ? 1 : 0
        )
    }

    private mutating func add(_ netlink: PathMonitor.Statistics) {
        output.add(
            "netwatch_path_changes_total",
            .counter,
            "The number of changes of paths to the public Internet, to the watched hosts and to the hosts of the queue.",
            Double(netlink.statusChanges)
        )
        output.add(
            "netwatch_netlink_overruns_total",
            .counter,
            "How often the receive buffer of the netlink socket overran, so that the state was read again.",
            Double(netlink.overruns)
        )
        output.add(
            "netwatch_netlink_malformed_total",
            .counter,
            "The number of netlink messages that could not be parsed.",
            Double(netlink.malformed)
        )
        output.add(
            "netwatch_audit_corrections_total",
            .counter,
            "The number of addresses whose path only the lookup of all addresses once a minute corrected.",
            Double(netlink.auditCorrections)
        )
    }

    // MARK: Hosts

    private mutating func add(_ hosts: [HostSnapshot]) {
        output.add(
            "netwatch_host_up",
            .gauge,
            "Whether the host is up. Missing while that is unknown.",
            hosts.filter { $0.state != .unknown }.map { (["host": $0.host.name], $0.state == .up ? 1 : 0) }
        )
        output.add(
            "netwatch_host_outage",
            .gauge,
            "Whether the host is down for this cause.",
            hosts.flatMap { host in
                OutageCause.allCases.map { cause in
                    (["host": host.host.name, "cause": cause.rawValue], host.state == .down(cause) ? 1 : 0)
                }
            }
        )
        output.add(
            "netwatch_host_probes_total",
            .counter,
            "The number of probes since the service started.",
            hosts.flatMap { host in
                [
                    (["host": host.host.name, "result": "success"], Double(host.successes)),
                    (["host": host.host.name, "result": "failure"], Double(host.failures)),
                ]
            }
        )
        output.add(
            "netwatch_host_state_changes_total",
            .counter,
            "The number of changes between up, down and unknown since the service started.",
            hosts.map { (["host": $0.host.name], Double($0.changes)) }
        )
        addTimes(hosts)
    }

    private mutating func addTimes(_ hosts: [HostSnapshot]) {
        output.add(
            "netwatch_host_probe_duration_seconds",
            "The duration of the successful probes.",
            hosts.filter { $0.latencies.count > 0 }.map { (["host": $0.host.name], $0.latencies) }
        )
        output.add(
            "netwatch_host_last_success_timestamp_seconds",
            .gauge,
            "When the last successful probe ended.",
            hosts.compactMap { host in
                host.succeededAt.map { (["host": host.host.name], Double($0) / 1000) }
            }
        )
    }

    // MARK: Queue

    private mutating func add(_ queue: QueueStatistics) {
        output.add(
            "netwatch_queue_requests",
            .gauge,
            "The number of requests in each state. Finished requests are counted while the history keeps them.",
            queue.counts.byName.sorted { $0.key < $1.key }.map { (["state": $0.key], Double($0.value)) }
        )
        output.add(
            "netwatch_queue_bytes",
            .gauge,
            "The size of the unfinished requests in bytes.",
            Double(queue.bytes)
        )
        output.add(
            "netwatch_queue_oldest_timestamp_seconds",
            .gauge,
            "When the oldest waiting request was accepted. Missing if none waits.",
            queue.oldest?.timeIntervalSince1970
        )
        output.add("netwatch_queue_paused", .gauge, "Whether the queue is paused.", queue.isPaused ? 1 : 0)
        output.add(
            "netwatch_queue_closed_lanes",
            .gauge,
            "The number of lanes that wait after failures or a Retry-After.",
            Double(queue.closedLanes.count)
        )
        output.add("netwatch_store_bytes", .gauge, "The size of the database.", Double(queue.databaseBytes))
        output.add(
            "netwatch_store_free_bytes",
            .gauge,
            "The free space of the database's file system.",
            Double(queue.freeBytes)
        )
        output.add(
            "netwatch_store_disk_reserve_bytes",
            .gauge,
            "The free space that new requests leave to the requests that were accepted.",
            Double(queue.diskReserve)
        )
        output.add(
            "netwatch_staged_bytes",
            .gauge,
            "The size of uploaded bodies that no request uses yet.",
            Double(queue.stagedBytes)
        )
    }

    private mutating func add(_ scan: QueueScan) {
        output.add(
            "netwatch_store_scan_findings",
            .gauge,
            "The number of damaged parts that the scans of the store have found.",
            Double(scan.findingCount)
        )
        output.add(
            "netwatch_store_scan_completed_timestamp_seconds",
            .gauge,
            "When the last complete scan of the store ended. Missing if none has ended.",
            scan.completed?.timeIntervalSince1970
        )
    }

    private mutating func add(_ activity: QueueMeter.Values) {
        output.add(
            "netwatch_queue_attempts_total",
            .counter,
            "The number of attempts that ended, by their effect on the request.",
            QueueMeter.Result.allCases.map { result in
                (["result": result.rawValue], Double(activity.attempts[result, default: 0]))
            }
        )
        output.add(
            "netwatch_queue_delivery_delay_seconds",
            "The time between the acceptance of a request and its delivery.",
            activity.delays
        )
    }

    private mutating func add(_ pushes: PushMeter.Values, _ now: HostTracker.Moment) {
        output.add(
            "netwatch_push_last_success_timestamp_seconds",
            .gauge,
            "When the collector accepted pushed metrics last. Missing before that.",
            pushes.lastSuccess.map { Double($0.wall(at: now)) / 1000 }
        )
        output.add(
            "netwatch_push_failures_total",
            .counter,
            "The number of attempts to push metrics that failed, and of pushes that the queue refused.",
            Double(pushes.failures)
        )
    }

    // MARK: Process

    private mutating func add(_ process: ProcessUsage) {
        output.add(
            "process_start_time_seconds",
            .gauge,
            "When the service started.",
            process.started.timeIntervalSince1970
        )
        output.add(
            "process_cpu_seconds_total",
            .counter,
            "The processor time of the service.",
            process.cpuSeconds
        )
        output.add(
            "process_resident_memory_bytes",
            .gauge,
            "The resident memory of the service.",
            process.residentBytes
        )
        output.add("process_open_fds", .gauge, "The number of open descriptors.", process.openDescriptors)
        output.add("process_max_fds", .gauge, "The limit of open descriptors.", process.maximumDescriptors)
    }
}
