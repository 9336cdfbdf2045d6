internal import ClientCore
internal import Glibc
internal import NetwatchService
internal import OfflineQueue

/// The checks of the service, its configuration and its credentials.
enum ServiceChecks {
    /// How long the service may take for each response.
    static let timeout: Duration = .seconds(5)

    /// - Parameter credentials: The directory of the credentials, without a path if it is not known.
    static func configuration(
        _ configuration: Result<ConfigurationFiles.Result, InvalidConfiguration>,
        credentials: CredentialDirectory
    ) async -> [DoctorFinding] {
        switch configuration {
        case .success(let result):
            let hooks = result.configuration.hooks
            return [.ok(result.verdict)] + (await findings(on: hooks, credentials: credentials))
        case .failure(let error):
            // A file that cannot be read has no position.
            let last = error.problems.last { $0.line > 0 }
            return error.problems.map { problem in
                .problem("\(problem)", advice: problem == last ? ConfigurationOption.keysHint : nil)
            }
        }
    }

    /// Returns a warning for each hook that cannot report now, because its program or its credential is missing.
    private static func findings(
        on hooks: [Hook],
        credentials directory: CredentialDirectory
    ) async -> [DoctorFinding] {
        // The check of the credentials reports a directory that cannot be read.
        let isReadable = (try? await directory.check()) != nil
        let names = await directory.names()
        return hooks.compactMap { (hook) -> DoctorFinding? in
            switch hook.action {
            case .program(let program):
                return program.fault.map {
                    DoctorFinding.warning(
                        $0,
                        advice: "correct its path, or permit the user of the service to execute it"
                    )
                }
            case .webhook(let webhook):
                guard let path = directory.path, isReadable, let name = webhook.credential,
                    !names.contains(name)
                else { return nil }
                return DoctorFinding.warning(
                    "a hook uses the credential `\(name)`, which does not exist",
                    advice: "add the file of the credential to `\(path)`"
                )
            }
        }
    }

    static func service(_ options: ServiceOptions) async -> [DoctorFinding] {
        let socket: ArgumentBytes
        do throws(CommandError) { socket = try options.path() } catch { return [.problem(error)] }
        let summary = await ServiceSummary.asking(socket, timeout: timeout)
        switch summary.state {
        case .running: return await running(summary, ServiceClient(path: socket, busyTimeout: .zero))
        case .notRunning:
            let unit = socket.text == ServicePaths.systemSocket ? await UnitState.query() : nil
            return [stopped(summary, unit: unit)]
        case .busy: return [.warning(summary.summary, advice: "try again in a few seconds")]
        case .notPermitted: return [.problem(summary.failure ?? .notPermitted(socket))]
        case .notAnswering:
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

    private static func running(_ summary: ServiceSummary, _ client: ServiceClient) async -> [DoctorFinding] {
        // A service of an earlier version does not have this route.
        let status = try? await client.get("/v1/status", within: timeout, as: ControlMessage.Status.self)
        let process = process(summary, version: status?.version, rights: await permission(client))
        return [process, status?.reload.flatMap(finding)].compactMap(\.self)
    }

    private static func process(
        _ summary: ServiceSummary,
        version: String?,
        rights: String?
    ) -> DoctorFinding {
        let process = version.map { "\(summary.summary), version \($0)" } ?? summary.summary
        let text = process + (rights.map { "; this user may \($0) requests" } ?? "")
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

    /// Returns what this user may do with requests; `nil` if the service does not say it. The list of uploads is only for
    /// users who may submit.
    private static func permission(_ client: ServiceClient) async -> String? {
        do throws(CommandError) {
            _ = try await client.get("/v1/bodies", within: timeout, as: ControlMessage.StagedBodies.self)
            return "submit"
        } catch {
            return error.status == .noPermission ? "read but not submit" : nil
        }
    }

    /// Returns the user whose credential files the service accepts: for root, the user of the running service.
    static func user(of options: ServiceOptions) -> UInt32 {
        guard geteuid() == 0, let socket = try? options.path(),
            let user = try? ServiceProcess.user(listeningAt: socket.bytes)
        else { return geteuid() }
        return user
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
