internal import ClientCore
internal import Foundation
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

/// What the service reports about itself and its queue. It is read once, before all checks, so that they describe the
/// same state.
struct ServiceReading {
    /// How long the service may take for each response.
    private static let timeout: Duration = .seconds(5)

    let socket: ArgumentBytes
    let summary: ServiceSummary
    /// `nil` if the service does not respond.
    private(set) var status: ControlMessage.Status?
    /// The comparison of the service's files with its configuration; `nil` also if this user has no full access.
    private(set) var configuration: ControlMessage.Configuration?
    /// The check of the database; `nil` in the same cases, and if the service did not respond in time.
    private(set) var storeCheck: ControlMessage.StoreCheck?
    /// What this user may do with requests; `nil` if the service does not say it.
    private(set) var rights: String?

    static func reading(_ options: ServiceOptions) async -> Result<ServiceReading, CommandError> {
        do throws(CommandError) {
            let socket = try options.path()
            return .success(await ServiceReading(socket: socket))
        } catch {
            return .failure(error)
        }
    }

    private init(socket: ArgumentBytes) async {
        self.socket = socket
        summary = await ServiceSummary.asking(socket, timeout: Self.timeout)
        guard summary.state == .running else { return }
        let client = ServiceClient(path: socket, busyTimeout: .zero)
        status = try? await client.get("/v1/status", within: Self.timeout, as: ControlMessage.Status.self)
        configuration = try? await client.get(
            "/v1/configuration",
            within: Self.timeout,
            as: ControlMessage.Configuration.self
        )
        storeCheck = try? await client.get(
            "/v1/queue/check",
            within: Self.timeout,
            as: ControlMessage.StoreCheck.self
        )
        rights = await Self.rights(client)
    }

    /// The list of uploads is only for users who may submit.
    private static func rights(_ client: ServiceClient) async -> String? {
        do throws(CommandError) {
            _ = try await client.get("/v1/bodies", within: timeout, as: ControlMessage.StagedBodies.self)
            return "submit"
        } catch {
            return error.status == .noPermission ? "read but not submit" : nil
        }
    }
}

/// The state of the service's unit, as systemd reports it.
struct UnitState: Equatable {
    /// The property `ActiveState`, such as `inactive`.
    let activity: String
    /// The property `Result` of the last run, such as `exit-code`.
    let result: String

    /// Whether the unit has failed, or waits for a restart after a failure.
    var hasFailed: Bool { ["failed", "activating"].contains(activity) && result != "success" }

    /// Parses lines such as `ActiveState=failed`. `nil` if a property is missing.
    init?(properties: String) {
        let pairs = properties.split(separator: "\n").map { $0.split(separator: "=", maxSplits: 1) }
        func value(_ name: String) -> String? {
            pairs.first { $0.count == 2 && $0[0] == name }.map { String($0[1]) }
        }
        guard let activity = value("ActiveState"), let result = value("Result") else { return nil }
        self.activity = activity
        self.result = result
    }

    /// Prints the two properties. env(1) searches for systemctl(1) in `PATH`.
    private static let command = [
        "/usr/bin/env", "systemctl", "show", "--property=ActiveState,Result", SystemUnit.name,
    ]

    /// Queries systemd for the state of ``SystemUnit``.
    ///
    /// - Parameters:
    ///   - command: The path of a program that prints the two properties, and its arguments. Default: systemctl(1).
    ///   - timeout: When the program receives SIGTERM. The query ends at most 2 s later. Default: 5 s.
    /// - Returns: `nil` if the command fails, for example because systemd does not run.
    static func query(
        _ command: [String] = Self.command,
        timeout: Duration = .seconds(5)
    ) async -> UnitState? {
        let output = await ChildProcess.output(
            of: command,
            environment: ProcessInfo.processInfo.environment,
            timeout: timeout
        )
        return output.flatMap { UnitState(properties: String(decoding: $0, as: UTF8.self)) }
    }
}
