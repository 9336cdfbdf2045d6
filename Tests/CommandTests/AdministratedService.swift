internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// A service with the directories of the package, below a directory of the test, and a shell for the commands of the
/// documentation. The commands use the paths of the package, which are replaced before they run.
final class AdministratedService {
    let directory = try! ScratchDirectory()
    let namespace: NetworkNamespace?
    private(set) var process: Subprocess?

    /// - Parameter namespace: The network namespace of the service and of the commands. Default: the test's own.
    init(in namespace: NetworkNamespace? = nil) throws {
        self.namespace = namespace
        let folders = [
            "var/lib", "var/backups", "etc/netwatch", "etc/cron.d", "usr/local/bin", "run/netwatch", "root",
            "bin",
        ]
        for folder in folders {
            try FileManager.default.createDirectory(
                atPath: directory.file(folder),
                withIntermediateDirectories: true
            )
        }
        try FileManager.default.createSymbolicLink(
            atPath: directory.file("bin/netwatch"),
            withDestinationPath: Command.path
        )
        // The commands need no other user.
        try directory.writeScript("exec \"$@\"", to: "bin/sudo")
    }

    deinit {
        process?.signal(SIGKILL)
    }

    /// The variables that systemd sets for the unit. The commands use them, too, instead of the default paths. If there
    /// are credentials, the service reads the files themselves, not copies.
    private var environment: [String: String] {
        var environment = [
            "STATE_DIRECTORY": directory.file("var/lib/netwatch"),
            "RUNTIME_DIRECTORY": directory.file("run/netwatch"),
            "CONFIGURATION_DIRECTORY": directory.file("etc/netwatch"),
            "PATH": "\(directory.file("bin")):/usr/bin:/bin:/usr/sbin:/sbin",
        ]
        let credentials = directory.file("etc/netwatch/credentials")
        if FileManager.default.fileExists(atPath: credentials) {
            environment["CREDENTIALS_DIRECTORY"] = credentials
        }
        return environment
    }

    /// Starts the service, and waits until it is ready.
    func start(_ arguments: [String] = ["serve"]) async throws {
        let process = try Command.start(arguments, environment: environment, in: namespace)
        self.process = process
        try await process.errors.wait { $0.contains { $0.hasSuffix("ready") } }
    }

    /// Stops the service if it runs.
    func stop() async throws {
        guard let process else { return }
        process.signal(SIGTERM)
        #expect(try await process.end() == .exited(0))
        self.process = nil
    }

    /// Waits until the service has logged a line that contains `words` since its last start.
    func hasLogged(_ words: String) async throws {
        try await process?.errors.wait { $0.contains { $0.contains(words) } }
    }

    /// Runs the commands of a block of the documentation as in the home directory of root, and returns their output. The
    /// calls of systemctl(1) start and stop the service of the test. `netwatch serve` restarts it.
    @discardableResult
    func run(_ block: String) async throws -> [String] {
        var commands: [Substring] = []
        var output: [String] = []
        // The shell ends at a command that fails, as before `&&`.
        let lines = block.replacing(#/ &&\s+systemctl /#, with: "\nsystemctl ")
        for line in lines.split(separator: "\n", omittingEmptySubsequences: false) {
            guard line.hasPrefix("systemctl ") || line.hasPrefix("netwatch serve") else {
                commands.append(line)
                continue
            }
            output += try await shell(commands)
            commands = []
            try await control(String(line))
        }
        return try await output + shell(commands)
    }

    private func control(_ command: String) async throws {
        switch command {
        case "systemctl daemon-reload": break
        case "systemctl start netwatch", "systemctl enable --now netwatch": try await start()
        case "systemctl stop netwatch", "systemctl disable --now netwatch": try await stop()
        case "systemctl restart netwatch":
            try await stop()
            try await start()
        case _ where command.hasPrefix("netwatch serve"):
            try await stop()
            try await start(command.split(separator: " ").dropFirst().map(String.init).filter { $0 != "&" })
        default: Issue.record("the test cannot run `\(command)`")
        }
    }

    private func shell(_ commands: [Substring]) async throws -> [String] {
        let text = ["/etc/", "/var/", "/run/", "/usr/local/"].reduce(commands.joined(separator: "\n")) {
            text,
            path in
            text.replacing(path, with: directory.path + path)
        }
        let shell = try Subprocess(
            "/bin/sh",
            ["-euc", "cd \(directory.file("root"))\n\(text)"],
            environment: environment,
            in: namespace
        )
        let outcome = try await shell.outcome()
        #expect(outcome.ending == .exited(0), "\(text)\n\(outcome.output + outcome.errors)")
        return outcome.output
    }

    /// Runs a command that prints at least one line and then ends only by a signal, and interrupts it.
    func interrupt(_ command: String) async throws {
        let process = try Subprocess(
            "/bin/sh",
            ["-c", "exec \(command) 2>&1"],
            environment: environment,
            in: namespace
        )
        try await process.output.wait { !$0.isEmpty }
        process.signal(SIGINT)
        #expect(try await process.end() == .signalled(SIGINT), "\(command)")
    }

    /// Returns the command that cron(8) would run for the only entry of a file in `/etc/cron.d`.
    func cronCommand(_ name: String) throws -> String {
        let entry = try String(contentsOfFile: directory.file("etc/cron.d/\(name)"), encoding: .utf8)
        let fields = entry.split(separator: " root ", maxSplits: 1)
        try #require(fields.count == 2)
        return String(fields[1]).replacing(directory.path, with: "")
    }

    /// The ids of the unfinished requests, in the order in which they were accepted.
    func waiting() async throws -> [String] {
        try await run("netwatch queue list --state pending,inflight,held --format json").map { line in
            try #require(try Command.json(line)["id"] as? String)
        }
    }
}
