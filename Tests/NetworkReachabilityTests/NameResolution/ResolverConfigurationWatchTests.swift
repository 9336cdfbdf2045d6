internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetworkReachability

@Suite struct ResolverConfigurationWatchTests {
    private let directory: ScratchDirectory
    private let reports = Recorder<Bool>()
    private let watch: ResolverConfigurationWatch

    /// Watches `etc/resolv.conf`, a symbolic link to `run/resolve/stub`, and `etc/hosts`.
    init() throws {
        directory = try ScratchDirectory()
        try shell(
            """
            cd \(directory.path); mkdir -p etc run/resolve
            echo one > run/resolve/stub; ln -s ../run/resolve/stub etc/resolv.conf; echo > etc/hosts
            """
        )
        watch = ResolverConfigurationWatch(
            loop: try EventLoop(label: "test"),
            paths: ["resolv.conf", "hosts", "gai.conf"].map { [directory] in directory.file("etc/\($0)") },
            quietPeriod: .milliseconds(20)
        ) { [reports] in reports.record(true) }
        watch.start()
        #expect(watch.failure.withLock { $0 } == nil)
    }

    /// Runs a shell command in the directory and waits for a report.
    private func expectReport(of command: String, _ location: SourceLocation = #_sourceLocation) async throws
    {
        let before = reports.values.count
        try shell("cd \(directory.path); \(command)")
        do {
            try await reports.wait { $0.count > before }
        } catch {
            Issue.record("no report of `\(command)`", sourceLocation: location)
        }
        try await settle()
    }

    /// Runs a shell command in the directory and expects no report.
    private func expectNoReport(on command: String, _ location: SourceLocation = #_sourceLocation)
        async throws
    {
        let before = reports.values.count
        try shell("cd \(directory.path); \(command)")
        await takeEvents()
        #expect(await !watch.hasPendingChange, sourceLocation: location)
        #expect(reports.values.count == before, sourceLocation: location)
    }

    /// Waits until the loop has read the pending inotify events. Each turn of the loop reads events before it runs the
    /// jobs of an actor.
    private func takeEvents() async {
        for _ in 0..<2 { _ = await watch.hasPendingChange }
    }

    /// Waits until all changes have been reported.
    private func settle() async throws {
        await takeEvents()
        var count = reports.values.count
        while await watch.hasPendingChange {
            try await reports.wait { [count] in $0.count > count }
            count = reports.values.count
        }
    }

    @Test func `replacing a file twice is reported each time`() async throws {
        for content in ["two", "three"] {
            try await expectReport(
                of: "echo \(content) > run/resolve/new; mv run/resolve/new run/resolve/stub"
            )
        }
        try await expectReport(of: "echo > etc/.hosts; mv etc/.hosts etc/hosts")
    }

    @Test func `writing a file in place is reported, even after the file was replaced`() async throws {
        try await expectReport(of: "echo more >> run/resolve/stub")
        try await expectReport(of: "echo > run/resolve/new; mv run/resolve/new run/resolve/stub")
        try await expectReport(of: "echo more >> run/resolve/stub")
        try await expectReport(of: ": > etc/hosts")
    }

    @Test func `a write through another hard link is reported`() async throws {
        try shell("cd \(directory.path); mkdir elsewhere; ln run/resolve/stub elsewhere/alias")
        try await settleFirst()
        try await expectReport(of: "echo more >> elsewhere/alias")
    }

    /// Waits for the report of a new hard link. It is reported because the link count is part of a file's state.
    private func settleFirst() async throws {
        try await reports.wait { !$0.isEmpty }
        try await settle()
    }

    @Test func `changing a symbolic link and its new target is reported`() async throws {
        try shell("cd \(directory.path); mkdir other; echo > other/conf")
        try await expectReport(of: "ln -s ../other/conf etc/new; mv -T etc/new etc/resolv.conf")
        try await expectReport(of: "echo more >> other/conf")
        try await expectReport(of: "echo > other/new; mv other/new other/conf")
        try await expectNoReport(on: "echo more >> run/resolve/stub; rm run/resolve/stub; rmdir run/resolve")
    }

    @Test func `a symbolic link that is replaced by a file is reported`() async throws {
        try await expectReport(of: "rm etc/resolv.conf")
        try await expectReport(of: "echo > etc/resolv.conf")
        try await expectReport(of: "echo more >> etc/resolv.conf")
    }

    @Test func `removing and recreating a directory is reported`() async throws {
        try await expectReport(of: "rm -r run/resolve")
        try await expectReport(of: "mkdir run/resolve")
        try await expectReport(of: "echo > run/resolve/stub")
        try await expectReport(of: "echo more >> run/resolve/stub")
        try await expectReport(of: "mv run/resolve run/away; rm -r run")
        try await expectReport(of: "mkdir -p run/resolve; echo > run/resolve/stub")
        try await expectReport(of: "echo more >> run/resolve/stub")
    }

    @Test func `creating and removing a file is reported`() async throws {
        try await expectReport(of: "echo > etc/gai.conf")
        try await expectReport(of: "rm etc/gai.conf")
    }

    @Test func `changes to other files are ignored`() async throws {
        try await expectNoReport(on: "echo > etc/passwd; echo >> etc/passwd; mv etc/passwd etc/shadow")
        try await expectNoReport(
            on: "rm etc/shadow; mkdir run/resolve/netif; echo > run/resolve/resolv.conf.bak"
        )
        try await expectNoReport(on: "cat etc/hosts etc/resolv.conf; ls etc")
    }

    @Test func `an overflow of the inotify queue counts as a change`() async throws {
        let limit = try shell("cat /proc/sys/fs/inotify/max_queued_events")
        let size = try #require(Int(limit.filter(\.isNumber)))
        let gate = Gate(), isBlocked = Recorder<Bool>()
        watch.loop.execute {
            isBlocked.record(true)
            gate.wait()
        }
        try await isBlocked.waitForLast { $0 }
        let names = ["etc/a", "etc/b"].map(directory.file)
        for _ in 0...size / 2 {
            close(open(names[0], O_CREAT | O_WRONLY | O_CLOEXEC, 0o600))
            // Two different events, because the kernel merges identical ones.
            rename(names[0], names[1])
            unlink(names[1])
        }
        #expect(reports.values == [])
        gate.open()
        try await reports.wait { !$0.isEmpty }
    }

    @Test func `an inotify failure is reported, and a later start recovers`()
        async throws
    {
        let attempts = Lock(0)
        let watch = ResolverConfigurationWatch(
            loop: watch.loop,
            paths: [directory.file("etc/hosts")],
            retryInterval: .zero,
            makeInotify: { () throws(SystemError) in
                let isFirst = attempts.withLock { attempts in
                    attempts += 1
                    return attempts == 1
                }
                if isFirst { throw SystemError(call: "inotify_init1", errno: EMFILE) }
                return try Inotify()
            },
            onChange: { [reports] in reports.record(true) }
        )
        watch.start()
        #expect(watch.failure.withLock { $0?.errno } == EMFILE)
        watch.start()
        #expect(watch.failure.withLock { $0 } == nil)
        // After the retry the watch reports a change, because changes since the failure went unnoticed.
        try await reports.wait { $0.count == 1 }
        try shell("echo more >> \(directory.file("etc/hosts"))")
        try await reports.wait { $0.count >= 2 }
        watch.start()
        #expect(attempts.withLock { $0 } == 2)
    }
}
