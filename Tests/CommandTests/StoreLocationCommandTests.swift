internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// Stores that are removed or damaged while their service runs.
@Suite(.timeLimit(.minutes(5))) struct StoreLocationCommandTests {
    @Test(arguments: [
        ("rm -rf state", "the queue's directory `"),
        ("mv state away && mkdir state", "the queue's directory `"),
        ("rm state/queue.lock", "the queue's lock `"), ("rm state/queue.sqlite", "the queue's database `"),
        ("rm state/queue.sqlite-wal", "the database's log `"),
        ("rm -rf state/spool", "the spool of bodies `"),
    ]) func `a service whose store was removed or replaced exits with 78`(
        command: String,
        words: String
    ) async throws {
        let directory = try ScratchDirectory()
        let service = try await RunningService(in: directory)
        try await service.pause()
        try await service.keep("http://127.0.0.1:9/", "-d", "kept")
        try shell("cd \(directory.path) && \(command)")
        // The request is rejected, whether the service has already noticed the change or notices it at this commit.
        let sent = try await service.run("send", "--queue", "always", "http://127.0.0.1:9/", "-d", "lost")
        #expect(sent.ending != .exited(0) && sent.output == [], "\(sent)")
        #expect(try await service.process.end() == .exited(78))
        let error = try #require(service.process.errors.values.last)
        #expect(error.contains(words) && error.contains(directory.file("state")), "\(error)")
    }

    @Test func `an idle service also exits when its store is removed`() async throws {
        let directory = try ScratchDirectory()
        let service = try await RunningService(in: directory)
        try shell("rm -rf \(directory.file("state"))")
        #expect(try await service.process.end() == .exited(78))
        #expect(access(directory.file("state"), F_OK) != 0, "no directory is created")
    }

    @Test func `a second service is rejected even if the lock file was removed`() async throws {
        let directory = try ScratchDirectory()
        let service = try await RunningService(in: directory)
        // SIGSTOP keeps the first service from noticing the change while the second one starts.
        service.process.signal(SIGSTOP)
        try shell("rm \(directory.file("state/queue.lock"))")
        let second = try await Command.run(
            "serve",
            "--state-dir",
            directory.file("state"),
            "--socket",
            directory.file("other")
        )
        #expect(second.ending == .exited(2))
        #expect(second.errors.first?.contains("is in use by another process") == true, "\(second.errors)")
        service.process.signal(SIGCONT)
        #expect(try await service.process.end() == .exited(78))
    }

    @Test func `a service whose database was moved away does not start, and creates nothing`() async throws {
        let queue = try await QueueFixture(.directory, count: 1)
        let (state, kept) = (queue.directory.file("state"), queue.directory.file("kept"))
        try shell("mv \(state)/queue.sqlite \(kept)")
        let before = try shell("ls -AR \(state)")
        let run = try await Command.run(
            "serve",
            "--state-dir",
            state,
            "--socket",
            queue.directory.file("other")
        )
        #expect(run.ending == .exited(78))
        let errors = run.errors.joined(separator: "\n")
        #expect(errors.contains("`\(state)/queue.sqlite` is missing"), "\(errors)")
        #expect(errors.contains("move it back"), "\(errors)")
        #expect(try shell("ls -AR \(state)") == before)
        try shell("mv \(kept) \(state)/queue.sqlite")
        let service = try await RunningService(in: queue.directory)
        #expect(try await service.queue().count == 1)
        try await service.stop()
    }

    // MARK: The log

    /// Creates a state directory as SIGKILL leaves it: the requests are in the WAL, not in the database file.
    private func killed(in directory: ScratchDirectory) async throws {
        let service = try await RunningService(in: directory)
        try await service.pause()
        for number in 0..<12 { try await service.keep("http://127.0.0.1:9/\(number)", "-d", "x") }
        try await service.kill()
    }

    /// Changes one byte of a page in the WAL.
    ///
    /// - Parameter part: The position, from 0 (the start of the WAL) to 1 (its last page).
    private func flip(_ part: Double, in directory: ScratchDirectory) throws {
        let url = URL(fileURLWithPath: directory.file("state/queue.sqlite-wal"))
        var log = try Data(contentsOf: url)
        let frames = (log.count - 32) / 4120
        log[32 + Int(Double(frames - 1) * part) * 4120 + 1000] ^= 1
        try log.write(to: url)
    }

    @Test func `verify reports a damaged log, and the service logs how much it dropped`() async throws {
        let directory = try ScratchDirectory()
        try await killed(in: directory)
        try flip(0.6, in: directory)
        let state = directory.file("state")
        for _ in 0..<2 {
            let verified = try await Command.run("queue", "verify", "--state-dir", state)
            #expect(verified.ending == .exited(78), "the first look must not have changed it: \(verified)")
            #expect(verified.errors.first?.contains("of its log is damaged") == true, "\(verified.errors)")
        }
        let service = try await RunningService(in: directory)
        let left = try await service.queue().count
        #expect(left > 0 && left < 12)
        let log = service.process.errors.values
        #expect(log.contains { $0.contains("warning") && $0.contains("commits from there on") }, "\(log)")
        let verified = try await service.run("queue", "verify")
        #expect(verified.ending == .exited(78))
        #expect(
            verified.output.contains { $0.hasPrefix("database: queue.sqlite-wal: ") },
            "\(verified.output)"
        )
        try await service.stop()
    }

    @Test func `an incomplete last commit is sound, and the service logs that it was dropped`() async throws {
        let directory = try ScratchDirectory()
        try await killed(in: directory)
        try flip(1, in: directory)
        let service = try await RunningService(in: directory)
        #expect(try await service.queue().count == 11)
        let words = "the end of the database's log was incomplete; dropped 1 commit"
        #expect(
            service.process.errors.values.contains { $0.contains(words) },
            "\(service.process.errors.values)"
        )
        let verified = try await service.run("queue", "verify")
        #expect(verified.ending == .exited(0))
        #expect(verified.output.contains { $0.hasPrefix("log_tail: ") }, "\(verified.output)")
        try await service.stop()
    }
}
