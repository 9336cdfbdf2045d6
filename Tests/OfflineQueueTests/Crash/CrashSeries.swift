internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import QueueTestProcess

/// A queue whose process is killed repeatedly. A last process sends the remaining requests.
///
/// The seed determines all choices, but not the timing. A repeated run kills processes after the same delays, but not
/// at the same instructions.
struct CrashSeries: Sendable {
    /// The way a process ends.
    enum End: Sendable {
        /// The series kills the process after a delay, which begins when the process starts, or when its queue is open.
        case timed(Duration, isAfterReady: Bool)
        /// The process kills itself at a crash point.
        case crash(TestProcessOptions.Crash)
    }

    var seed: UInt64
    var kills: Int
    var producers = 64
    var requestsPerProducer = 4
    /// The directory in which the queue's directory is created.
    var parent = "/dev/shm"
    var fault: TestProcessOptions.Fault?
    /// Whether each kill simulates a power cut.
    var cutsPower = false
    /// How many of 1,000 unsynced sectors may reach the disk before a power cut, at most.
    var leaksAtMost: UInt32 = 500
    /// Whether requests are enqueued with the durability `full`, so that they survive a power cut.
    var isDurable = true
    /// Whether each request has a webhook.
    var hasWebhooks = false
    /// Whether the processes send requests.
    var sends = true
    /// The minimum and maximum delay after which the series kills a process.
    var earliestKill = Duration.zero
    var latestKill = Duration.milliseconds(80)
    /// Whether half of the processes kill themselves at a crash point.
    var hasCrashes = true
    /// The crash point at which every process kills itself; `nil` if the seed determines how each process ends.
    var crash: TestProcessOptions.Crash?
    /// The time that a process has to reach its crash point, before the series kills it.
    var timeLimit = Duration.seconds(3)
    /// Whether a last process sends the remaining requests.
    var drains = true

    static let program = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent().appending(path: "QueueTestProcess").path

    func run() async throws -> CrashLedger {
        let scratch = try ScratchDirectory(in: parent)
        let record = CrashRecord()
        let server = try CrashServer(seed: seed, record: record)
        defer { server.stop() }
        var options = TestProcessOptions(directory: scratch.file("queue"), url: server.url)
        options.producers = producers
        options.requestsPerProducer = requestsPerProducer
        options.fault = fault
        options.isDurable = isDurable
        // An edit is synced, and would make earlier requests durable, too. A deliberate fault is detected more reliably
        // without edits.
        options.edits = isDurable && fault == nil
        options.sends = sends
        options.hasWebhooks = hasWebhooks
        var generator = SeededGenerator(seed: seed)
        let places = TestProcessOptions.Crash.Place.allCases.shuffled(using: &generator)
        for run in 0..<kills {
            options.seed = generator.next()
            options.firstNumber = run * requestsPerProducer
            options.checkpointPages = checkpointPages.randomElement(using: &generator)!
            if cutsPower { options.unsyncedWriteLoss = unsyncedWriteLoss(&generator) }
            try await kill(end(run, places, &generator), options, run: run, record)
        }
        if drains { try await drain(options, record) }
        return record.current
    }

    // MARK: Choices

    /// The possible checkpoint intervals in pages. With a short interval, a kill is likely to hit a checkpoint.
    var checkpointPages: [Int32] = [20, 100, 1000]

    /// Returns how a process ends. The series kills every second process after a delay. The other processes kill
    /// themselves, at each crash point in turn, unless ``crash`` selects one.
    private func end(
        _ run: Int,
        _ places: [TestProcessOptions.Crash.Place],
        _ generator: inout SeededGenerator
    ) -> End {
        if let crash { return .crash(crash) }
        guard run.isMultiple(of: 2) || !hasCrashes else {
            let place = places[run / 2 % places.count]
            let passage = Int.random(in: 1...place.latestPassage, using: &generator)
            return .crash(TestProcessOptions.Crash(place, passage: passage))
        }
        let isAfterReady = Int.random(in: 0..<8, using: &generator) > 0
        let share = Double.random(in: 0..<1, using: &generator)
        return .timed(earliestKill + (latestKill - earliestKill) * share, isAfterReady: isAfterReady)
    }

    /// Returns what a power cut leaves on the disk: in half of the cases, chosen at random, some of the unsynced data.
    private func unsyncedWriteLoss(_ generator: inout SeededGenerator) -> TestProcessOptions.UnsyncedWriteLoss
    {
        let leaked = UInt32.random(in: 0...leaksAtMost, using: &generator)
        let leaks = Bool.random(using: &generator)
        return TestProcessOptions.UnsyncedWriteLoss(
            leakedPerMille: leaks ? leaked : 0,
            seed: generator.next()
        )
    }

    // MARK: Processes

    /// Runs a process until it is killed, and records what the store contains afterwards.
    func kill(_ end: End, _ options: TestProcessOptions, run: Int, _ record: CrashRecord) async throws {
        var options = options
        if case .crash(let crash) = end {
            options.crash = crash
            if crash.place.isInCheckpoint { options.checkpointPages = checkpointPages[0] }
        }
        let process = try Subprocess(Self.program, [try options.argument])
        switch end {
        case .timed(let delay, let isAfterReady):
            if isAfterReady { try await firstLine(process) }
            try await Task.sleep(for: delay)
            process.signal(SIGKILL)
        case .crash(let crash):
            let isReached = try await ends(process, within: timeLimit)
            record.note { $0.passed(crash.place.rawValue, isReached: isReached) }
        }
        note(try await process.outcome(), run: run, record)
        let copy = try await CrashStoreCopy.reading(
            options.directory,
            scratch: parent,
            keyFile: options.encryptionKeyFile
        )
        record.note { ledger in
            ledger.killed(run: run, rows: copy.rows, integrity: copy.integrity, spool: copy.spool)
        }
    }

    /// Waits for the first line of a process, or for its end.
    private func firstLine(_ process: Subprocess) async throws {
        let end = Task {
            _ = try await process.end()
            process.output.record("")
        }
        try await process.output.wait { !$0.isEmpty }
        end.cancel()
    }

    /// Waits for the end of a process, and kills it after a time limit.
    ///
    /// - Returns: Whether the process ended without being killed.
    private func ends(_ process: Subprocess, within timeLimit: Duration) async throws -> Bool {
        do {
            _ = try await process.end(within: timeLimit)
            return true
        } catch is Subprocess.TimedOut {
            return false
        }
    }

    private func note(_ outcome: Subprocess.Outcome, run: Int, _ record: CrashRecord) {
        record.note { ledger in
            for line in outcome.output {
                let words = line.split(separator: " ")
                guard words.count == 3, words[0] == "accepted" else { continue }
                ledger.accepted(String(words[1]), key: words[2] == "-" ? nil : String(words[2]))
            }
            if outcome.ending != .signalled(SIGKILL) {
                ledger.ended(
                    run: run,
                    words: (outcome.output.suffix(1) + outcome.errors).joined(separator: "; ")
                )
            }
        }
    }

    /// Runs a process that sends the remaining requests, and records what the store contains afterwards.
    func drain(_ options: TestProcessOptions, _ record: CrashRecord) async throws {
        var options = options
        options.mode = .drain
        options.unsyncedWriteLoss = nil
        options.crash = nil
        let process = try Subprocess(Self.program, [try options.argument])
        _ = try await ends(process, within: .seconds(120))
        let outcome = try await process.outcome()
        if outcome.ending != .exited(0) {
            record.note { $0.ended(run: kills, words: "\(outcome.ending): \(outcome.output)") }
        }
        let copy = try await CrashStoreCopy.reading(
            options.directory,
            scratch: parent,
            keyFile: options.encryptionKeyFile
        )
        record.note { $0.drained(rows: copy.rows) }
    }
}

extension TestProcessOptions.Crash.Place {
    fileprivate var isInCheckpoint: Bool { self == .checkpointWrite || self == .checkpointSync }

    /// The maximum number of times that a process passes a crash point before it kills itself there. Most runs pass the
    /// point that often.
    fileprivate var latestPassage: Int {
        switch self {
        case .write: 1500
        case .sync, .checkpointWrite, .beforeCommit, .afterCommit, .claimed, .sending, .responded: 40
        case .checkpointSync, .bodySynced, .bodyNamed, .concluded: 3
        }
    }
}
