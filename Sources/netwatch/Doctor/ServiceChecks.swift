internal import ClientCore
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchService
internal import OfflineQueue

/// The checks of the service, its configuration and its credentials.
enum ServiceChecks {
    /// - Parameter credentials: The directory of the credentials, without a path if it is not known.
    static func configuration(
        _ configuration: Result<ConfigurationFiles.Result, InvalidConfiguration>,
        credentials: CredentialDirectory
    ) async -> [DoctorFinding] {
        switch configuration {
        case .success(let result):
            return [.ok(result.verdict)] + (await findings(on: result.configuration, credentials))
        case .failure(let error):
            // A file that cannot be read has no position.
            let last = error.problems.last { $0.line > 0 }
            return error.problems.map { problem in
                .problem("\(problem)", advice: problem == last ? ConfigurationOption.keysHint : nil)
            }
        }
    }

    /// Returns a warning for each hook that cannot report now, because its program or its credential is missing, and
    /// for the push of metrics if its credential is missing.
    private static func findings(
        on configuration: ServiceConfiguration,
        _ directory: CredentialDirectory
    ) async -> [DoctorFinding] {
        // The check of the credentials reports a directory that cannot be read.
        let isReadable = (try? await directory.check()) != nil
        let names = await directory.names()
        func missing(_ name: String?, of user: String) -> DoctorFinding? {
            guard let path = directory.path, isReadable, let name, !names.contains(name) else { return nil }
            return .warning(
                "\(user) uses the credential `\(name)`, which does not exist",
                advice: "add the file of the credential to `\(path)`"
            )
        }
        let hooks = configuration.hooks.map { (hook) -> DoctorFinding? in
            switch hook.action {
            case .program(let program):
                return program.fault.map {
                    DoctorFinding.warning(
                        $0,
                        advice: "correct its path, or permit the user of the service to execute it"
                    )
                }
            case .webhook(let webhook): return missing(webhook.credential, of: "a hook")
            }
        }
        let push = configuration.metricsPush
        let pushed = push.url.flatMap { _ in missing(push.credential, of: "the push of metrics") }
        return (hooks + [pushed]).compactMap(\.self)
    }

    static func service(
        _ reading: Result<ServiceReading, CommandError>,
        _ configuration: ConfigurationUse
    ) async -> [DoctorFinding] {
        switch reading {
        case .success(let service): await findings(on: service, configuration)
        case .failure(let error): [.problem(error)]
        }
    }

    private static func findings(
        on service: ServiceReading,
        _ configuration: ConfigurationUse
    ) async -> [DoctorFinding] {
        let (socket, summary) = (service.socket, service.summary)
        switch summary.state {
        case .running:
            let (status, names) = (service.status, summary.names)
            return [process(service), status?.reload.flatMap(finding)].compactMap(\.self)
                + configuration.findings + [silence(names), status?.push.flatMap(finding)].compactMap(\.self)
        case .notRunning:
            let unit = socket.text == ServicePaths.systemSocket ? await UnitState.query() : nil
            return [stopped(summary, unit: unit)]
        case .busy: return [.warning(summary.summary, advice: "try again in a few seconds")]
        case .notPermitted: return [.problem(summary.failure ?? .notPermitted(socket))]
        case .notAnswering:
            // The check of the transport has reported why the service cannot be queried.
            guard CommandError.unusableTransport == nil else { return [] }
            return [.problem(summary.summary, advice: "look at the log of the service, and restart it")]
        }
    }

    /// - Parameter unit: The state of the unit; `nil` if it is unknown or the service is not that of the unit.
    static func stopped(_ summary: ServiceSummary, unit: UnitState?) -> DoctorFinding {
        guard let unit, unit.hasFailed else {
            let socket = ArgumentBytes(summary.socket.utf8)
            return .warning(summary.summary, advice: SystemUnit.startHint(socket: socket))
        }
        return .problem(
            "\(summary.summary): the unit \(SystemUnit.name) has failed (\(unit.result))",
            advice: "`systemctl status netwatch` and `journalctl -u netwatch` show the cause"
        )
    }

    private static func process(_ service: ServiceReading) -> DoctorFinding {
        let (summary, version) = (service.summary.summary, service.status?.version)
        let process = version.map { "\(summary), version \($0)" } ?? summary
        let text = process + (service.rights.map { "; this user may \($0) requests" } ?? "")
        guard let version, version != NetwatchVersion.current else { return .ok(text) }
        return .warning(
            "\(text); this command has the version \(NetwatchVersion.current)",
            advice: "restart the service after an upgrade"
        )
    }

    /// Returns the warning about a refused reload; `nil` if the reload was not refused.
    private static func finding(_ reload: ControlMessage.LastReload) -> DoctorFinding? {
        guard reload.refused else { return nil }
        return .warning(
            "the service refused its configuration at \(reload.time.rfc3339), and uses the earlier one",
            advice: "correct the faults, which the log of the service lists, and reload the service"
        )
    }

    /// Returns the warning that the service gets no answers from name servers; `nil` if it gets them, or if it has not
    /// asked.
    private static func silence(_ names: ControlMessage.Names?) -> DoctorFinding? {
        guard let seconds = names?.silentSeconds else { return nil }
        return .warning(
            "no name server has answered the service for \(DurationText.format(.seconds(seconds)))",
            advice: "check the network, and the servers that the check `resolver` names"
        )
    }

    /// Returns a warning if the collector has not accepted the metrics for 5 minutes and for 5 intervals; `nil` otherwise.
    static func finding(_ push: ControlMessage.Push) -> DoctorFinding? {
        guard push.silentSeconds > max(300, 5 * push.intervalSeconds) else { return nil }
        let time = DurationText.format(.seconds(push.silentSeconds))
        let last = push.lastSuccess.map { ", the last ones at \($0.rfc3339)" } ?? ""
        return .warning(
            "the collector has accepted no metrics for \(time)\(last); failed attempts: \(push.failures)",
            advice:
                "if the collector refuses them, the log of the service says why; otherwise, `netwatch queue list` as "
                + "root shows why the push waits"
        )
    }

    /// Says who can connect to the socket of a running service.
    static func socket(_ reading: Result<ServiceReading, CommandError>) -> [DoctorFinding] {
        guard let service = try? reading.get(), service.summary.state == .running,
            let admission = SocketAdmission(of: service.socket.bytes)
        else { return [] }
        return [finding(admission, at: service.socket)]
    }

    private static func finding(_ admission: SocketAdmission, at socket: ArgumentBytes) -> DoctorFinding {
        switch admission {
        case .owner:
            return .ok("only root and the user of the service can connect to `\(socket)`")
        case .groups(let groups):
            let names = groups.map { "`\($0.name)`" }.joined(separator: ", ")
            return .ok("root, the user of the service and members of \(names) can connect to `\(socket)`")
        case .everyone(let error):
            let reason =
                error.map { ", which has no access control list: \(errnoDescription($0.errno))" } ?? ""
            return .warning(
                "every user can connect to `\(socket)`\(reason)",
                advice:
                    "use a socket on a file system with access control lists, such as tmpfs; the service refuses users "
                    + "without access"
            )
        }
    }

    /// - Parameter directory: The directory of the credentials, without a path for none.
    static func credentials(in directory: CredentialDirectory) async -> [DoctorFinding] {
        guard directory.path != nil else { return [] }
        do {
            let faults = try await directory.check()
            return faults.isEmpty ? [.ok(await directory.verdict)] : faults.map { .problem($0) }
        } catch {
            return [.problem("\(error)")]
        }
    }
}
