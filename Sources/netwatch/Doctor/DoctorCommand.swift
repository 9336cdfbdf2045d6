internal import ArgumentParser
internal import Foundation
internal import NetwatchService

/// The `netwatch doctor` command.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check what netwatch needs on this machine, and say what to do.",
        discussion: """
            netwatch doctor
            netwatch doctor --host api.example.com --probe https
            netwatch doctor --config ./netwatch.toml --credentials ./credentials

            Prints a line for each check: ok, a warning or a problem, with the fact and what to do. The checks \
            are, in this order: netlink, the libraries for transfers, the resolver's configuration, the path to \
            localhost, the clock, the configuration files, the service and what this user may do with it, who \
            can connect to its socket, the credential files, the hosts of --host, and the store.

            Without --host, the command sends nothing beyond this machine, except one DNS query to each name server. \
            It changes nothing, and needs neither a service nor root. While the service runs, it checks the store for \
            at most 2 s, and reports whether it uses the configuration of its files; root and the user of the service \
            get these reports. Without the service, the command checks the structure of the store. If only a socket \
            is named, and no service listens on it, that is a problem. If no service listens on the system's socket, \
            it calls `systemctl show` to find out whether the unit netwatch.service has failed. With netwatch.socket, \
            it starts a stopped service, because each connection does.

            Exit status: 0 if there is no problem, even with warnings; 1 if there is a problem.
            """
    )

    @Option(
        help: .init(
            "A host to look up and to connect to. Can be repeated. Default: none, nothing is sent.",
            valueName: "host"
        )
    )
    var host: [String] = []

    @Option(
        name: .shortAndLong,
        help: "With --host: the probe, as in `netwatch host`. Default tcp, port 443.",
        transform: ProbeChoice.argument
    )
    var probe: ProbeChoice?

    @Option(
        help: .init(
            "The directory of the credentials to check. Default: that of `netwatch serve`.",
            valueName: "directory"
        )
    )
    var credentials: String?

    @Option(name: .shortAndLong, help: "The output format: text, or json (a single JSON object).")
    var format = OutputFormat.text

    @OptionGroup var file: ConfigurationOption
    @OptionGroup var queue: QueueOptions
    @OptionGroup var color: ColorOption

    func validate() throws {
        if credentials == "" { throw ValidationError("`--credentials` must not be empty") }
        if probe != nil, host.isEmpty { throw ValidationError("`--probe` requires `--host`") }
    }

    mutating func run() async throws {
        let files = file.files
        // Read first, so that an invalid host ends the command before it contacts the service.
        let hosts = try HostList.reading(host, from: nil)
        let service = await ServiceReading.reading(queue.service)
        let subjects = DoctorCheck.Subjects(
            configuration: Result { () throws(InvalidConfiguration) in try files.readForService() },
            queue: queue,
            configurationPath: files.path.absolutePath,
            unusedVariables: ServicePaths().unusedVariables,
            service: service,
            credentials: CredentialDirectory(
                path: credentials ?? ServicePaths().credentialsDirectory,
                user: credentialOwner(service)
            ),
            hosts: hosts,
            probe: probe ?? .tcp(port: 443)
        )
        var report = DoctorReport()
        for check in DoctorCheck.allCases {
            for finding in await check.findings(on: subjects) {
                let entry = DoctorReport.Entry(check: check, finding: finding)
                report.checks.append(entry)
                if format == .text { Printer.line(entry.line) }
            }
        }
        if format == .json { Printer.json(report, with: ControlMessage.encoder) }
        if report.hasProblems { throw ExitStatus.no.exitCode }
    }

    private func credentialOwner(_ service: Result<ServiceReading, CommandError>) -> UInt32 {
        let summary = (try? service.get())?.summary
        // If systemd listens on the socket, it is the process that listens, and not the service.
        return CredentialOwner.id(
            running: summary?.pid == 1 ? nil : summary?.user,
            directory: queue.stateDir ?? ServicePaths().stateDirectory
        )
    }
}

/// The output of `netwatch doctor`.
struct DoctorReport: Encodable {
    /// A finding with the name of its check.
    struct Entry: Encodable {
        let check: DoctorCheck
        let finding: DoctorFinding

        private enum CodingKeys: String, CodingKey {
            case check
        }

        func encode(to encoder: any Encoder) throws {
            try finding.encode(to: encoder)
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(check.rawValue, forKey: .check)
        }

        /// `store          problem  the database is damaged; what to do`
        var line: StyledText {
            let result = finding.result.rawValue
            let facts = [finding.message, finding.advice].compactMap(\.self).joined(separator: "; ")
            return StyledText(check.rawValue.padded(to: 13) + "  ") + StyledText(state: result)
                + StyledText(String(repeating: " ", count: 9 - result.count) + facts)
        }
    }

    var v = ControlMessage.version
    var type = "doctor"
    var time = Date()
    var checks: [Entry] = []

    var hasProblems: Bool { checks.contains { $0.finding.result == .problem } }
}
