internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// Commands of users who are neither root nor the user of the service.
@Suite(.enabled(if: OtherUsers.areAvailable, "becoming another user needs root"), .timeLimit(.minutes(5)))
struct AccessCommandTests {
    /// A group that every Debian and Ubuntu machine has.
    private static let group = (name: "daemon", id: 1)

    private let directory = try! ScratchDirectory()

    private func service(_ configuration: String) async throws -> RunningService {
        try #require(chmod(directory.path, 0o755) == 0)
        return try await RunningService(in: directory, options: ["--config", try write(configuration)])
    }

    private func write(_ configuration: String) throws -> String {
        try directory.write(Array(configuration.utf8), to: "netwatch.toml")
    }

    /// Runs a command as a user without an account.
    private func run(
        _ service: RunningService,
        asMemberOf group: Int?,
        user: Int = 60_001,
        _ arguments: String...
    ) async throws -> Subprocess.Outcome {
        let groups = group.map { "--groups=\($0)" } ?? "--clear-groups"
        let identity = ["--reuid=\(user)", "--regid=60001", groups]
        let command = [Command.path] + arguments + ["--socket", service.socket]
        return try await Subprocess("/usr/bin/setpriv", identity + command).outcome()
    }

    @Test func `members of a group submit, see and drop their own requests`() async throws {
        let service = try await service("[access]\nsubmit-groups = [\"\(Self.group.name)\"]\n")
        try await service.pause()
        let secret = try await service.keep("http://127.0.0.1:1/root", "--tag", "hidden")
        let url = "http://127.0.0.1:1/own"
        let sent = try await run(service, asMemberOf: Self.group.id, "send", "--queue", "always", url)
        #expect(sent.ending == .exited(0), "\(sent.errors)")
        let own = try #require(sent.output.first)
        let listed = try await run(service, asMemberOf: Self.group.id, "queue", "list")
        #expect(listed.output.contains { $0.hasPrefix(own) && $0.contains("/own") })
        #expect(listed.output.contains { $0.hasPrefix(secret) && $0.contains("of another user") })
        #expect(!listed.output.joined().contains("/root"))
        let shown = try await run(service, asMemberOf: Self.group.id, "queue", "show", secret)
        #expect(
            shown.ending == .exited(0) && !shown.output.contains { $0.hasPrefix("tag") },
            "\(shown.output)"
        )
        #expect(shown.output.contains("host      127.0.0.1"))
        let refused = try await run(service, asMemberOf: Self.group.id, "queue", "cancel", secret)
        #expect(refused.ending == .exited(77), "\(refused.errors)")
        #expect(refused.errors.first?.contains("belongs to another user") == true, "\(refused.errors)")
        let mixed = try await run(service, asMemberOf: Self.group.id, "queue", "hold", secret, "unknown")
        #expect(mixed.ending == .exited(1), "\(mixed.errors)")
        let dropped = try await run(service, asMemberOf: Self.group.id, "queue", "cancel", own)
        #expect(dropped.ending == .exited(0), "\(dropped.errors)")
        #expect(try await service.request(own)["submitter"] as? Int == 60_001)
    }

    @Test func `users have separate lanes, which are selected by their user`() async throws {
        let service = try await service("[access]\nsubmit-groups = [\"\(Self.group.name)\"]\n")
        try await service.pause()
        let url = "http://127.0.0.1:1/"
        func send(_ user: Int, _ lane: String) async throws -> Subprocess.Outcome {
            try await run(
                service,
                asMemberOf: Self.group.id,
                user: user,
                "send",
                "--queue",
                "always",
                "--fifo",
                "--lane",
                lane,
                url
            )
        }
        let reserved = try await send(60_001, "netwatch-hooks")
        #expect(reserved.ending == .exited(64) && reserved.output.isEmpty)
        #expect(reserved.errors.first?.contains("is `netwatch-hooks`; it must not begin with") == true)
        for user in [60_001, 60_002] { #expect(try await send(user, "l").ending == .exited(0)) }
        let paused = try await service.run("queue", "pause", "--lane", "l", "--submitter", "60001")
        #expect(paused.errors == ["paused 1 lane"])
        let statistics = try await service.run("queue", "stats").output
        #expect(statistics.contains { $0.hasSuffix("127.0.0.1, lane l, user 60001") }, "\(statistics)")
        let own = try await service.run("queue", "list", "--submitter", "60002", "--format", "json").output
        #expect(try own.map { try Command.json($0)["submitter"] as? Int } == [60_002])
        let foreign = try await run(service, asMemberOf: 1, "queue", "list", "--submitter", "60002")
        #expect(foreign.ending == .exited(77), "\(foreign.errors)")
        let unknown = try await service.run("queue", "list", "--submitter", "no such user")
        #expect(unknown.ending == .exited(64), "\(unknown.errors)")
    }

    /// What a user without access must change, on a socket with an access control list.
    private static let remedy =
        "add this user to the group `daemon` (`access.submit-groups` or `access.read-groups`), and log in again"

    @Test func `other users cannot connect, and are told what must be changed`() async throws {
        let service = try await service("[access]\nsubmit-groups = [\"\(Self.group.name)\"]\n")
        let refused = try await run(service, asMemberOf: nil, "queue", "list")
        #expect(refused.ending == .exited(77))
        #expect(
            refused.errors == [
                "error: this user may not connect to the service at `\(service.socket)`", "",
                "hint: \(Self.remedy); root and the user of the service always have access",
            ]
        )
    }

    @Test func `doctor reports a missing access once, with what must be changed`() async throws {
        let service = try await service("[access]\nsubmit-groups = [\"\(Self.group.name)\"]\n")
        let refused = try await run(service, asMemberOf: nil, "doctor")
        #expect(refused.ending == .exited(1))
        let lines = refused.output.filter { $0.contains("may not") }
        #expect(
            lines == [
                "service        problem  this user may not connect to the service at `\(service.socket)`; "
                    + "\(Self.remedy); root and the user of the service always have access"
            ]
        )
        #expect(
            !refused.output.contains { $0.hasPrefix("store ") || $0.contains("/v1/") },
            "\(refused.output)"
        )
    }

    @Test func `doctor and the log say who can connect, also after a reload`() async throws {
        let service = try await service("[access]\nread-groups = [\"\(Self.group.name)\"]\n")
        func findings() async throws -> [String] {
            try await service.run("doctor").output.filter { $0.hasPrefix("socket ") }
        }
        #expect(
            try await findings() == [
                "socket         ok       root, the user of the service and members of `daemon` can connect to "
                    + "`\(service.socket)`"
            ]
        )
        try await service.hasLogged("members of these groups can connect to the control socket: `daemon`")
        _ = try write("")
        service.process.signal(SIGHUP)
        try await service.hasLogged("only root and the user of the service can connect to the control socket")
        #expect(
            try await findings() == [
                "socket         ok       only root and the user of the service can connect to `\(service.socket)`"
            ]
        )
    }

    /// A ramfs has no access control lists.
    @Test func `without access control lists, a user without access is refused at once`() async throws {
        try #require(chmod(directory.path, 0o755) == 0)
        let configuration = try write("[access]\nsubmit-groups = [\"\(Self.group.name)\"]\n")
        let folder = directory.file("ram")
        try #require(mkdir(folder, 0o755) == 0)
        let (socket, log) = ("\(folder)/socket", directory.file("log"))
        let stranger = "/usr/bin/setpriv --reuid=60001 --regid=60001"
        let script = try directory.writeScript(
            """
            mount -t ramfs none \(folder)
            chmod 755 \(folder)
            : >\(log)
            \(Command.path) serve --config \(configuration) --state-dir \(directory.file("state")) --socket \(socket) \
                2>>\(log) &
            timeout 60 tail -n +1 -f \(log) | grep -q 'ready$'
            grep 'every user can connect' \(log)
            \(Command.path) doctor --socket \(socket) | grep '^socket'
            \(stranger) --clear-groups \(Command.path) queue list --socket \(socket) 2>&1
            echo "status $?"
            \(stranger) --groups=\(Self.group.id) \(Command.path) queue list --socket \(socket) >/dev/null 2>&1
            echo "status $?"
            kill $!
            wait $!
            """,
            to: "run"
        )
        let lines = try await Subprocess("/usr/bin/unshare", ["-m", "/bin/sh", script]).outcome().output
        try #require(lines.count >= 5, "\(lines)")
        #expect(lines[0].contains("because it cannot have an access control list: setxattr "), "\(lines)")
        #expect(lines[0].hasSuffix("Operation not supported"), "\(lines)")
        #expect(
            lines[1].hasPrefix(
                "socket         warning  every user can connect to `\(socket)`, which has no access control list: "
                    + "Operation not supported; use a socket on a file system with access control lists"
            ),
            "\(lines)"
        )
        #expect(
            lines[2]
                == "error: this user (60001) may not connect to the service; add this user to the group `daemon` "
                + "(`access.submit-groups` or `access.read-groups`), and log in again"
        )
        #expect(lines.suffix(2) == ["status 77", "status 0"], "\(lines)")
    }

    @Test func `without groups, other users cannot connect`() async throws {
        let service = try await service("")
        let refused = try await run(service, asMemberOf: Self.group.id, "queue", "list")
        #expect(refused.ending == .exited(77))
        #expect(
            refused.errors == [
                "error: this user may not connect to the service at `\(service.socket)`", "",
                "hint: add a group of this user to `access.submit-groups` or `access.read-groups` in the configuration "
                    + "of the service, and reload the service; root and the user of the service always have access",
            ]
        )
    }

    @Test func `a reload changes who has access, and the quota`() async throws {
        let service = try await service("")
        try await service.pause()
        let url = "http://127.0.0.1:1/"
        func send() async throws -> Subprocess.Ending {
            try await run(service, asMemberOf: Self.group.id, "send", "--queue", "always", url).ending
        }
        #expect(try await send() == .exited(77))
        _ = try write("[access]\nsubmit-groups = [\"\(Self.group.name)\"]\nquota = { requests = 1 }\n")
        service.process.signal(SIGHUP)
        try await service.hasLogged("the configuration was read again")
        #expect(try await send() == .exited(0))
        #expect(try await send() == .exited(75))
        #expect(!service.process.errors.values.contains { $0.contains("when the service is restarted") })
    }

    @Test func `a request beyond the quota ends with 75`() async throws {
        let service = try await service(
            "[access]\nsubmit-groups = [\"\(Self.group.name)\"]\nquota = { requests = 1 }\n"
        )
        try await service.pause()
        let url = "http://127.0.0.1:1/"
        let first = try await run(service, asMemberOf: 1, "send", "--queue", "always", url)
        #expect(first.ending == .exited(0), "\(first.errors)")
        let second = try await run(service, asMemberOf: 1, "send", "--queue", "always", url)
        #expect(second.ending == .exited(75) && second.output.isEmpty)
        #expect(second.errors.first == "error: the user 60001 has 1 requests; its limit is 1")
        let other = try await run(service, asMemberOf: 1, user: 60_002, "send", "--queue", "always", url)
        #expect(other.ending == .exited(0), "\(other.errors)")
    }

    @Test func `without a service, the default directory of another user is not opened`() async throws {
        try #require(chmod(directory.path, 0o755) == 0)
        let state = directory.file("state")
        try #require(mkdir(state, 0o755) == 0)
        func list(_ options: String...) async throws -> Subprocess.Outcome {
            let identity = ["--reuid=60001", "--regid=60001", "--clear-groups"]
            return try await Subprocess(
                "/usr/bin/setpriv",
                identity + [Command.path, "queue", "list"] + options,
                environment: ["STATE_DIRECTORY": state, "RUNTIME_DIRECTORY": directory.path]
            ).outcome()
        }
        let stopped = try await list()
        #expect(stopped.ending == .exited(69), "\(stopped.errors)")
        #expect(stopped.errors.first?.hasPrefix("error: no service listens on ") == true, "\(stopped.errors)")
        let named = try await list("--state-dir", state)
        #expect(named.ending == .exited(77), "\(named.errors)")
    }
}
