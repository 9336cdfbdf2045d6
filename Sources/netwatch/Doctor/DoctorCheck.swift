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

/// A result of one check of `netwatch doctor`.
struct DoctorFinding: Encodable, Sendable {
    /// How serious a finding is.
    enum Result: String, Encodable {
        case ok
        /// A part of netwatch does not work, or works with limits. The rest is not affected.
        case warning
        /// Something that is configured or running does not work.
        case problem
    }

    let result: Result
    /// The fact.
    let message: String
    /// What to do; `nil` if there is nothing to do.
    let advice: String?

    static func ok(_ message: String) -> DoctorFinding {
        DoctorFinding(result: .ok, message: message, advice: nil)
    }

    static func warning(_ message: String, advice: String? = nil) -> DoctorFinding {
        DoctorFinding(result: .warning, message: message, advice: advice)
    }

    static func problem(_ message: String, advice: String? = nil) -> DoctorFinding {
        DoctorFinding(result: .problem, message: message, advice: advice)
    }

    static func problem(_ error: CommandError) -> DoctorFinding {
        problem(error.message, advice: error.hint)
    }
}

/// The checks of hosts, which look up their names and connect to them.
enum HostChecks {
    static func findings(on hosts: [NetworkHost], _ choice: ProbeChoice) async -> [DoctorFinding] {
        var findings: [DoctorFinding] = []
        for host in hosts { findings.append(await finding(on: .host(host), choice)) }
        return findings
    }

    private static func finding(on target: PathTarget, _ choice: ProbeChoice) async -> DoctorFinding {
        do throws(CommandError) {
            let probe = try choice.probe(for: target)
            guard let status = await firstResult(of: target, by: probe) else {
                return .problem("\(target.subject) could not be checked")
            }
            let text = "\(target.subject) is \(status.stateText) (\(status.summary(separator: ", ")))"
            return status.reachability == .reachable ? .ok(text) : .problem(text)
        } catch {
            return .problem(error)
        }
    }

    /// Returns the first status that is a result.
    ///
    /// - Parameter probe: The probe to send; `nil` for none.
    private static func firstResult(
        of target: PathTarget,
        by probe: (any Probe)?
    ) async -> ValidatedStatus? {
        let (statuses, continuation) = AsyncStream.makeStream(of: ValidatedStatus.self)
        let watch: AnyObject
        if let probe {
            watch = PathValidator(target: target, probe: probe, interval: nil) { continuation.yield($0) }
        } else {
            watch = PathMonitor.shared.watch(target) {
                continuation.yield(ValidatedStatus(status: $0, probe: nil))
            }
        }
        defer { withExtendedLifetime(watch) {} }
        return await statuses.first { probe == nil || $0.probe != nil || !$0.status.isReachable }
    }
}
