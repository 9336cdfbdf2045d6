internal import Foundation
internal import Glibc
internal import Logging
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

@testable internal import NetwatchService

/// The programs of hooks. Each ends with a status other than 0, because the service logs nothing for a success.
@Suite(.timeLimit(.minutes(5))) struct HookProgramTests {
    private let directory = try! ScratchDirectory()
    private let messages = Recorder<String>()

    /// Creates a program that runs commands of the shell. `$1` is the path of a file for its results.
    private func program(_ commands: String, timeout: Duration = .seconds(60)) throws -> HookProgram {
        var program = HookProgram(path: try directory.writeScript(commands, to: "program"))
        program.arguments = [directory.file("result")]
        program.timeout = timeout
        return program
    }

    private var result: [String] {
        get throws {
            let text = try String(contentsOfFile: directory.file("result"), encoding: .utf8)
            return text.split(separator: "\n").map(String.init)
        }
    }

    private static let message = HookMessage(alerts: [
        HostAlert(
            event: .up,
            host: "db",
            check: "tcp db:5432",
            cause: .remote,
            reason: "two\nlines",
            outage: 1000,
            downSince: 1000,
            upSince: 2000
        )
    ])

    private func start(_ program: HookProgram, by programs: HookPrograms) async throws {
        await programs.start(program, for: Self.message, try Self.message.form.environment)
    }

    private func failures(atLeast count: Int) async throws -> [String] {
        try await messages.wait { $0.count { $0.contains(" failed for host `db`: ") } >= count }
        return messages.values.map { $0.replacing(directory.path, with: "") }
    }

    @Test func `a program gets its arguments and the alert, without a shell and without other variables`()
        async throws
    {
        var program = try program("env >$1; printf '%s' \"$2\" >>$1; exit 3")
        program.arguments.append("$HOME; `id` 'x'")
        let programs = HookPrograms(logger: .recording(messages))
        try await start(program, by: programs)
        let failures = try await failures(atLeast: 1)
        #expect(failures == ["the program `/program` of a hook failed for host `db`: exit status 3"])
        let lines = try result, json = String(decoding: try Self.message.form.json, as: UTF8.self)
        #expect(lines.last == "$HOME; `id` 'x'")
        #expect(
            lines.filter { $0.hasPrefix("NETWATCH_") }.sorted()
                == [
                    "NETWATCH_CAUSE=remote", "NETWATCH_COUNT=1",
                    "NETWATCH_DOWN_SINCE=1970-01-01T00:00:01.000Z", "NETWATCH_EVENT=up", "NETWATCH_HOSTS=db",
                    "NETWATCH_JSON=\(json)",
                    "NETWATCH_REASON=two\\nlines",
                    "NETWATCH_TEXT=db is up again; it was down (remote: two\\nlines) since 1970-01-01T00:00:01.000Z",
                    "NETWATCH_TRUNCATED_HOSTS=0", "NETWATCH_UP_SINCE=1970-01-01T00:00:02.000Z",
                ]
        )
        // The shell itself sets the first four.
        let known: Set = [
            "PWD", "OLDPWD", "SHLVL", "_", "PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ",
            "CREDENTIALS_DIRECTORY",
        ]
        let names = lines.dropLast().map { String($0.prefix { $0 != "=" }) }
        #expect(Set(names).subtracting(known).allSatisfy { $0.hasPrefix("NETWATCH_") }, "\(names)")
    }

    @Test func `the runs of a program follow one another in the order of the changes`() async throws {
        let program = try program("echo begin >>$1; sleep 0.1; echo end >>$1; exit 1")
        let programs = HookPrograms(logger: .recording(messages))
        for _ in 0..<3 { try await start(program, by: programs) }
        _ = try await failures(atLeast: 3)
        #expect(try result == ["begin", "end", "begin", "end", "begin", "end"])
    }

    /// Either the program and its child ignore SIGTERM, or only the child does.
    @Test(arguments: [
        ("trap '' TERM; sleep 300 & echo $! >$1; wait; wait", 9),
        ("(trap '' TERM; exec sleep 300) & echo $! >$1; wait", 15),
    ])
    func `a program that exceeds its timeout is killed with its children`(
        commands: String,
        signal: Int
    ) async throws {
        let program = try program(commands, timeout: .seconds(1))
        let programs = HookPrograms(logger: .recording(messages))
        try await start(program, by: programs)
        let failures = try await failures(atLeast: 1)
        #expect(
            failures == [
                "the program `/program` of a hook exceeded its timeout",
                "the program `/program` of a hook failed for host `db`: signal \(signal)",
            ]
        )
        let child = try #require(try pid_t(result[0]))
        // The kernel ends the child at the same time, but removes it later.
        try await poll { kill(child, 0) == -1 || isZombie(child) }
    }

    private func isZombie(_ pid: pid_t) -> Bool {
        let status = try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
        return status?.contains("State:\tZ") ?? true
    }

    @Test func `a stop ends the program that runs, and starts none of those that wait`() async throws {
        let program = try program("echo started >$1; exec sleep 300")
        let programs = HookPrograms(logger: .recording(messages))
        for _ in 0..<3 { try await start(program, by: programs) }
        try await poll { (try? result) == ["started"] }
        await programs.stop()
        try await start(program, by: programs)
        let failures = try await failures(atLeast: 1)
        #expect(failures == ["the program `/program` of a hook failed for host `db`: signal 15"])
        #expect(try result == ["started"])
    }

    @Test func `a program inherits no descriptor, no ignored signal and no blocked signal`() async throws {
        // Without O_CLOEXEC, and with a number that the shell does not use itself.
        let descriptor = fcntl(STDERR_FILENO, F_DUPFD, 200)
        defer { close(descriptor) }
        let handler = signal(SIGUSR2, SIG_IGN)
        defer { signal(SIGUSR2, handler) }
        let program = try program(
            "[ -e /proc/$$/fd/\(descriptor) ] && exit 9; grep -E 'Sig(Blk|Ign)' /proc/self/status >$1; exit 4"
        )
        let programs = HookPrograms(logger: .recording(messages))
        try await start(program, by: programs)
        let failures = try await failures(atLeast: 1)
        #expect(failures == ["the program `/program` of a hook failed for host `db`: exit status 4"])
        // glibc's posix_spawn(3) makes its own signals 32 and 33 ignored.
        let glibc: UInt64 = 0b11 << 31
        let masks = try result.map { try #require(UInt64($0.suffix(16), radix: 16)) }
        #expect(masks.map { $0 & ~glibc } == [0, 0])
    }

    @Test func `a program that is just being written is started again`() async throws {
        let program = try program("exit 3")
        let file = open(program.path, O_RDWR | O_CLOEXEC)
        let programs = HookPrograms(logger: .recording(messages))
        // A separate thread, because a busy test process could delay a task until the attempts end.
        Thread.detachNewThread {
            usleep(200_000)
            close(file)
        }
        try await start(program, by: programs)
        try await messages.wait { !$0.isEmpty }
        let failures = messages.values.map { $0.replacing(directory.path, with: "") }
        #expect(failures == ["the program `/program` of a hook failed for host `db`: exit status 3"])
    }

    @Test func `a program that is written for long is logged, and another program runs`() async throws {
        let (busy, other) = (try program("exit 3"), try directory.writeScript("exit 4", to: "other"))
        let file = open(busy.path, O_RDWR | O_CLOEXEC)
        let programs = HookPrograms(logger: .recording(messages))
        try await start(busy, by: programs)
        try await start(HookProgram(path: other), by: programs)
        try await messages.wait { $0.count == 2 }
        close(file)
        #expect(
            messages.values.map { $0.replacing(directory.path, with: "") }.sorted() == [
                "the program `/other` of a hook failed for host `db`: exit status 4",
                "the program `/program` of a hook was not run for host `db` (up): Text file busy",
            ]
        )
    }

    @Test func `a missing program is logged when the hooks are set and when it should run`() async throws {
        let reporter = HookReporter(logger: .recording(messages), history: nil) { _, _ in }
        var hook = Hook(.program(HookProgram(path: "/nonexistent/program")))
        hook.groupWait = .zero
        await reporter.use([hook])
        #expect(messages.values.count == 1)
        let host = WatchedHost(name: "db", check: .route(try NetworkHost(validating: "192.0.2.1")))
        let down = HostTracker.Change(
            old: .up,
            new: .down(.remote),
            oldSince: .at(1000),
            since: .at(3000),
            reason: nil,
            time: .at(3000)
        )
        await reporter.report([(change: down, host: host)])
        try await messages.wait { $0.count == 2 }
        let program = "the program `/nonexistent/program` of a hook"
        #expect(
            messages.values == [
                "\(program) cannot be executed: No such file or directory",
                "\(program) was not run for host `db` (down): No such file or directory",
            ]
        )
    }
}
