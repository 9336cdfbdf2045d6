internal import ClientTestProcess
internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// Random requests that a queue takes over, in processes that are killed and started again on the same store. Whatever
/// happens:
///
/// - No handler is called twice, and each handler of a process that is not killed is called once.
/// - Each stored request ends exactly once, and nothing is sent after its end.
/// - The handler of the requests' tag, which each process registers again, receives every ended request. It receives a
///   request again only if the process ended before the queue could record the call.
///
/// ``CheckSize`` selects 6, 60 or 10,000 seeds: the fourth part of the seeds of ``CompletionGuaranteeTests`` that has a
/// queue, and further ones. `NETWATCH_SEED` selects a single seed.
@Suite(.serialized, .timeLimit(.minutes(120))) struct KilledCompletionTests {
    private static let seeds: [UInt64] = {
        let one = ProcessInfo.processInfo.environment["NETWATCH_SEED"].flatMap(UInt64.init)
        if let one { return [one] }
        return (0..<UInt64(CheckSize.choose(small: 6, medium: 60, full: 10_000))).map { $0 * 4 + 1 }
    }()

    @Test
    func `each handler is called once, and each stored request ends once, whenever processes are killed`()
        async throws
    {
        var ledgers: [CompletionLedger] = []
        // Two at a time.
        for start in stride(from: 0, to: Self.seeds.count, by: 2) {
            async let other = start + 1 < Self.seeds.count ? Self.run(Self.seeds[start + 1]) : nil
            ledgers.append(try await Self.run(Self.seeds[start]))
            if let other = try await other { ledgers.append(other) }
        }
        let kills = ledgers.map(\.kills).reduce(0, +)
        let (stored, ended) = (
            ledgers.map(\.stored.count).reduce(0, +), ledgers.map(\.finals.count).reduce(0, +)
        )
        print(
            """
            killed completion: \(ledgers.count) seeds, \(kills) kills, \
            \(ledgers.map(\.handlers).reduce(0, +)) handlers, \(stored) stored, \(ended) ended, \
            \(ledgers.map(\.resumed).reduce(0, +)) of them in a later process, \
            \(ledgers.map(\.violations.count).reduce(0, +)) violations
            """
        )
        #expect(ledgers.flatMap(\.violations).prefix(10) == [])
        #expect(ledgers.count == Self.seeds.count)
        if ledgers.count > 10 { #expect(kills > 0 && stored > 0) }
    }

    /// Faults of the store. Each scans fixed seeds until one has a request to which the fault applies.
    enum Fault: CaseIterable {
        /// The store is lost between two processes.
        case losesStore
        /// The store forgets that its requests have ended.
        case forgetsEnds
    }

    @Test(arguments: Fault.allCases)
    func `a store that loses or repeats requests is detected`(fault: Fault) async throws {
        var violations: [String] = []
        for seed in Self.faultySeeds where violations.isEmpty {
            violations = try await Self.run(seed, with: fault).violations
        }
        let expected = fault == .losesStore ? "was stored and is lost" : "ended 2 times"
        #expect(violations.contains { $0.contains(expected) }, "\(violations)")
    }

    private static let faultySeeds = (0..<25).map { UInt64($0) * 4 + 1 }

    // MARK: Lives

    /// Runs the processes of a seed: one or two that may be killed, in a third of the seeds a further one that is not
    /// killed, and a last one that sends the remaining requests.
    private static func run(_ seed: UInt64) async throws -> CompletionLedger {
        let directory = try ScratchDirectory(in: "/dev/shm")
        var ledger = CompletionLedger(seed: seed)
        for process in 0..<UInt64(seed / 4 % 3 == 0 ? 1 : 2) {
            var options = CompletionProcessOptions(
                seed: seed &+ process << 32,
                directory: directory.file("queue")
            )
            if process == 0 || seed / 4 % 3 == 2 { options.exitPoint = exitPoint(seed, process) }
            try await run(options, &ledger)
        }
        try await drain(seed, directory, &ledger)
        ledger.finish()
        return ledger
    }

    private static func exitPoint(_ seed: UInt64, _ process: UInt64) -> CompletionProcessOptions.ExitPoint {
        var generator = SeededGenerator(seed: seed &* 41 &+ process)
        let number = Int.random(in: 1...3, using: &generator)
        let points = CompletionProcessOptions.points.map {
            CompletionProcessOptions.ExitPoint.point($0, number)
        }
        let lines = ["handler", "stored", "sent", "ended", "completed"].map {
            CompletionProcessOptions.ExitPoint.line($0, number)
        }
        return (points + lines).randomElement(using: &generator)!
    }

    private static func run(_ seed: UInt64, with fault: Fault) async throws -> CompletionLedger {
        let directory = try ScratchDirectory(in: "/dev/shm")
        let (store, copy) = (directory.file("queue"), directory.file("copy"))
        var ledger = CompletionLedger(seed: seed)
        var options = CompletionProcessOptions(seed: seed, directory: store)
        options.exitPoint = .line("stored", 1)
        try await run(options, &ledger)
        guard !ledger.stored.isEmpty else { return ledger }
        switch fault {
        case .losesStore: try FileManager.default.removeItem(atPath: store)
        case .forgetsEnds:
            try FileManager.default.copyItem(atPath: store, toPath: copy)
            try await drain(seed, directory, &ledger)
            try FileManager.default.removeItem(atPath: store)
            try FileManager.default.moveItem(atPath: copy, toPath: store)
        }
        try await drain(seed, directory, &ledger)
        ledger.finish()
        return ledger
    }

    private static func drain(
        _ seed: UInt64,
        _ directory: ScratchDirectory,
        _ ledger: inout CompletionLedger
    ) async throws {
        var options = CompletionProcessOptions(seed: seed, directory: directory.file("queue"))
        options.isLast = true
        try await run(options, &ledger)
    }

    private static func run(_ options: CompletionProcessOptions, _ ledger: inout CompletionLedger)
        async throws
    {
        let argument = try ClientProcessOptions.queueCompletion(options).argument
        let process = try Subprocess(ClientTestProcess.path, [argument])
        defer { process.signal(SIGKILL) }
        let outcome = try await process.outcome()
        let isKilled = options.exitPoint != nil && outcome.ending == .signalled(9)
        ledger.add(outcome.output, isKilled: isKilled)
        if !isKilled, outcome.ending != .exited(0) {
            ledger.violated("the process \(outcome.ending) \(outcome.errors.suffix(3))")
        }
    }
}

/// The checks of ``KilledCompletionTests`` detect every broken promise.
struct CompletionLedgerTests {
    private static let last = ["ended a delivered", "completed a delivered", "final a delivered", "over"]

    private func violations(_ processes: [[String]], killed: Int = 1) -> [String] {
        var ledger = CompletionLedger(seed: 1)
        for (number, lines) in processes.enumerated() { ledger.add(lines, isKilled: number < killed) }
        ledger.finish()
        return ledger.violations.map { String($0.dropFirst("NETWATCH_SEED=1: ".count)) }
    }

    @Test func `a request that is stored, sent twice and ended once is no violation`() {
        let processes = [["handler 0", "stored a", "sent a"], ["sent a"] + Self.last]
        #expect(violations(processes) == [])
    }

    @Test func `the same number of a handler in another process is another handler`() {
        #expect(violations([["handler 0"], ["handler 0", "over"]]) == [])
    }

    @Test func `a handler that is called twice is a violation, even in a killed process`() {
        #expect(
            violations([["handler 3", "handler 3"], ["over"]]) == [
                "handler 3 was called 2 times in process 0"
            ]
        )
    }

    @Test func `a stored request that is lost or does not end is a violation`() {
        #expect(violations([["stored a"], ["over"]]) == ["`a` was stored and is lost"])
        let held = violations([["stored a"], ["completed a held", "final a held", "over"]])
        #expect(held == ["`a` is held at the end"])
    }

    @Test func `a request that ends twice, or in another state than reported, is a violation`() {
        let twice = violations([["stored a", "ended a delivered"], Self.last])
        #expect(twice == ["`a` ended 2 times: delivered, delivered"])
        let last = ["completed a delivered", "final a delivered", "over"]
        let other = violations([["stored a", "ended a dead"], last])
        #expect(other == ["`a` is delivered at the end, but ended as dead"])
    }

    @Test func `a dead request becomes cancelled only if the program cancels it in the queue`() {
        let ends = ["ended a dead", "ended a cancelled", "completed a dead", "final a cancelled", "over"]
        #expect(violations([["stored a", "cancelling a"], ends]) == [])
        #expect(
            violations([["stored a"], ends]) == [
                "`a` is cancelled at the end, but the tag's handler received it as dead",
                "`a` ended 2 times: dead, cancelled",
            ]
        )
    }

    @Test func `a request that is sent after its end is a violation`() {
        let completed = ["stored a", "ended a delivered", "completed a delivered"]
        let again = violations([completed, ["sent a", "final a delivered", "over"]])
        #expect(again == ["`a` was sent after its end"])
    }

    @Test func `a handler of the tag may receive only the last request again, in another process`() {
        let first = ["completed a dead", "completed b dead"]
        let second = ["final a dead", "final b dead", "over"]
        #expect(violations([first, ["completed b dead"] + second]) == [])
        #expect(violations([first, [], ["completed b dead"] + second], killed: 2) == [])
        let recorded = violations([first, ["completed a dead"] + second])
        #expect(recorded == ["the tag's handler received `a` again in process 1"])
        let twice = violations([["completed a dead"] + first, second])
        #expect(twice == ["the tag's handler received `a` twice in process 0"])
    }

    @Test func `a request that the handler of the tag receives never, or in another state, is a violation`() {
        let never = violations([["stored a"], ["final a dead", "over"]])
        #expect(never == ["`a` is dead at the end, but the tag's handler received it never"])
        let other = violations([["completed a delivered"], ["final a dead", "over"]])
        #expect(other == ["`a` is dead at the end, but the tag's handler received it as delivered"])
    }

    @Test func `a process that ends early, or that finds a violation itself, is a violation`() {
        #expect(violations([["handler 0"]], killed: 0) == ["process 0 did not end by itself"])
        #expect(violations([["violation x", "over"]], killed: 0) == ["x"])
    }
}
