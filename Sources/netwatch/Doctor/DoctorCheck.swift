internal import NetwatchService
internal import NetworkReachability
internal import OfflineQueue

/// The checks of `netwatch doctor`, in the order in which they run.
///
/// The store is checked last, because a command of root becomes the owner of the store for that.
enum DoctorCheck: String, CaseIterable {
    case netlink, transport, resolver, loopback, clock, configuration, service, socket, credentials, host,
        store

    /// What the checks examine.
    struct Subjects {
        var configuration: Result<ConfigurationFiles.Result, InvalidConfiguration>
        var queue: QueueOptions
        /// The absolute path of the main file of the configuration.
        var configurationPath: String
        var unusedVariables: [UnusedVariable]
        /// An error if the path of the socket is not valid.
        var service: Result<ServiceReading, CommandError>
        /// The directory of the credentials, without a path if it is not known.
        var credentials: CredentialDirectory
        /// The hosts to which the check connects.
        var hosts: [NetworkHost]
        var probe: ProbeChoice

        /// The limits of the queue; the defaults if the configuration has faults.
        private var limits: QueueLimits {
            (try? configuration.get())?.configuration.queue.limits ?? QueueLimits()
        }

        fileprivate var store: StoreCheck {
            StoreCheck(queue: queue, limits: limits, service: try? service.get())
        }

        fileprivate var configurationUse: ConfigurationUse {
            let reading = try? service.get()
            var faults: Set<String> = []
            if case .failure(let error) = configuration { faults = Set(error.problems.map(\.description)) }
            return ConfigurationUse(
                reported: reading?.configuration,
                status: reading?.status,
                checkedPath: configurationPath,
                reportedFaults: faults
            )
        }
    }

    /// Runs the check.
    ///
    /// - Returns: The findings; empty if the check does not apply.
    func findings(on subjects: Subjects) async -> [DoctorFinding] {
        switch self {
        case .netlink: [MachineChecks.netlink()]
        case .transport: MachineChecks.transport()
        case .resolver: [await MachineChecks.resolver()]
        case .loopback: [await MachineChecks.loopback()]
        case .clock: [MachineChecks.clock()]
        case .configuration:
            await ServiceChecks.configuration(subjects.configuration, credentials: subjects.credentials)
                + subjects.unusedVariables.map { DoctorFinding.warning(Printer.printable("\($0)")) }
        case .service: await ServiceChecks.service(subjects.service, subjects.configurationUse)
        case .socket: ServiceChecks.socket(subjects.service)
        case .credentials: await ServiceChecks.credentials(in: subjects.credentials)
        case .host: await HostChecks.findings(on: subjects.hosts, subjects.probe)
        case .store: await subjects.store.findings()
        }
    }
}
