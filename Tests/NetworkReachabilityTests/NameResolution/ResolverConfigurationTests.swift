internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Synchronization
internal import Testing

@testable internal import NetworkReachability

@Suite struct DebounceTests {
    private let start = ContinuousClock.now
    private var debounce = Debounce(quietPeriod: .milliseconds(100), maxDelay: .seconds(1))

    @Test func `a change is reported once after the quiet period`() {
        var debounce = debounce
        #expect(debounce.due == nil)
        debounce.note(at: start)
        debounce.note(at: start + .milliseconds(60))
        #expect(debounce.due == start + .milliseconds(160))
        let early = debounce.takeDue(at: start + .milliseconds(159))
        let due = debounce.takeDue(at: start + .milliseconds(160))
        let again = debounce.takeDue(at: start + .seconds(5))
        #expect((early, due, again) == (false, true, false))
    }

    @Test func `continuous changes are reported within one second`() {
        var debounce = debounce
        for tick in 0..<100 { debounce.note(at: start + .milliseconds(50 * tick)) }
        #expect(debounce.due == start + .seconds(1))
        let isDue = debounce.takeDue(at: start + .seconds(1))
        #expect(isDue)
        debounce.note(at: start + .seconds(7))
        #expect(debounce.due == start + .milliseconds(7100))
    }
}

@Suite struct FileTraceTests {
    private let directory: ScratchDirectory

    init() throws {
        directory = try ScratchDirectory()
    }

    private func trace(_ name: String) -> (names: [String], file: String?) {
        let trace = FileTrace(following: directory.file(name))
        let names = trace.names.map { "\($0.directory)/\($0.name)" }
        func relative(_ path: String) -> String {
            path.hasPrefix("\(directory.path)/") ? String(path.dropFirst(directory.path.count + 1)) : path
        }
        return (names.map(relative), trace.file.map(relative))
    }

    @Test func `a file is found by its path`() throws {
        try shell("echo > \(directory.file("plain"))")
        #expect(trace("plain") == (["plain"], "plain"))
        #expect(trace("./plain//") == (["plain"], "plain"))
    }

    @Test func `symbolic links are followed through relative, absolute and linked directories`() throws {
        try shell(
            """
            cd \(directory.path); mkdir -p a/b c; echo > a/b/file
            ln -s ../a/./b c/dir; ln -s dir/../b/file c/relative; ln -s $PWD/c/relative absolute
            """
        )
        #expect(trace("absolute") == (["absolute", "c/relative", "c/dir", "a/b/file"], "a/b/file"))
    }

    @Test func `a missing file is watched in the nearest existing directory`() throws {
        try shell("cd \(directory.path); mkdir a; ln -s a/b/c/file link; ln -s nowhere dangling; echo > file")
        #expect(trace("link") == (["link", "a/b"], nil))
        #expect(trace("dangling") == (["dangling", "nowhere"], nil))
        #expect(trace("file/below") == (["file"], nil))
    }

    @Test func `a symbolic link loop terminates`() throws {
        try shell("cd \(directory.path); ln -s two one; ln -s one two")
        let (names, file) = trace("one")
        #expect(file == nil)
        #expect(Set(names) == ["one", "two"])
        #expect(names.count == 41)
    }

    @Test func `a directory and a device are ignored`() throws {
        try shell("cd \(directory.path); mkdir dir; ln -s /dev/null null; ln -s / root")
        #expect(trace("dir") == (["dir"], nil))
        #expect(trace("null").file == nil)
        #expect(trace("root").file == nil)
        #expect(FileTrace(following: "/").names == [])
        #expect(FileTrace(following: "").names == [])
        #expect(FileTrace(following: "/../..").file == nil)
    }
}

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
    private func expectSilence(on command: String, _ location: SourceLocation = #_sourceLocation) async throws
    {
        let before = reports.values.count
        try shell("cd \(directory.path); \(command)")
        await takeEvents()
        #expect(await !watch.hasPendingChange, sourceLocation: location)
        #expect(reports.values.count == before, sourceLocation: location)
    }

    /// Waits until the loop has read the pending events. Each turn reads events before it runs jobs.
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

    @Test func `writing a file in place is reported, also after its replacement`() async throws {
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

    /// Waits for the report of the new hard link: a file's state includes its link count.
    private func settleFirst() async throws {
        try await reports.wait { !$0.isEmpty }
        try await settle()
    }

    @Test func `changing a symbolic link and its new target is reported`() async throws {
        try shell("cd \(directory.path); mkdir other; echo > other/conf")
        try await expectReport(of: "ln -s ../other/conf etc/new; mv -T etc/new etc/resolv.conf")
        try await expectReport(of: "echo more >> other/conf")
        try await expectReport(of: "echo > other/new; mv other/new other/conf")
        try await expectSilence(on: "echo more >> run/resolve/stub; rm run/resolve/stub; rmdir run/resolve")
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
        try await expectSilence(on: "echo > etc/passwd; echo >> etc/passwd; mv etc/passwd etc/shadow")
        try await expectSilence(
            on: "rm etc/shadow; mkdir run/resolve/netif; echo > run/resolve/resolv.conf.bak"
        )
        try await expectSilence(on: "cat etc/hosts etc/resolv.conf; ls etc")
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
        let attempts = Mutex(0)
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
        // The watch reports once, because it cannot know what changed in between.
        try await reports.wait { $0.count == 1 }
        try shell("echo more >> \(directory.file("etc/hosts"))")
        try await reports.wait { $0.count >= 2 }
        watch.start()
        #expect(attempts.withLock { $0 } == 2)
    }
}
