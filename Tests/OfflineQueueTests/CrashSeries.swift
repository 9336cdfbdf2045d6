internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import QueueVictim

/// A queue whose process is killed again and again, until a last one sends what is left.
///
/// Every choice follows from the seed. Times do not: a replay kills at the same delays, not at the same
/// instructions.
struct CrashSeries: Sendable {
    /// How each process ends.
    struct Kill: Sendable {
        /// Whether the delay begins when the queue is open, or when the process is started.
        let isAfterReady: Bool
        let delay: Duration
    }

    var seed: UInt64
    var kills: Int
    var producers = 64
    var requestsPerProducer = 2
    /// Where the queue's directory is made.
    var parent = "/dev/shm"
    var breakage: VictimOrders.Breakage?
    /// Whether each kill is a power cut.
    var cutsPower = false
    /// Whether what is left is sent at the end.
    var drains = true

    private static let program = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent().appending(path: "QueueVictim").path

    func run() async throws -> CrashLedger {
        let scratch = try ScratchDirectory(in: parent)
        let record = CrashRecord()
        let server = try CrashServer(seed: seed, record: record)
        defer { server.stop() }
        var orders = VictimOrders(directory: scratch.file("queue"), url: server.url)
        orders.producers = producers
        orders.requestsPerProducer = requestsPerProducer
        orders.breakage = breakage
        var generator = SeededGenerator(seed: seed)
        for run in 0..<kills {
            orders.seed = generator.next()
            orders.firstNumber = run * requestsPerProducer
            if cutsPower { orders.forgetting = forgetting(&generator) }
            try await kill(kill(&generator), orders, run: run, record)
        }
        if drains { try await drain(orders, record) }
        return record.current
    }

    // MARK: Choices

    private func kill(_ generator: inout SeededGenerator) -> Kill {
        let isAfterReady = Int.random(in: 0..<8, using: &generator) > 0
        let microseconds = Int.random(in: 0..<80_000, using: &generator)
        return Kill(isAfterReady: isAfterReady, delay: .microseconds(microseconds))
    }

    /// Every second cut finds some of what was not synced on the disk all the same.
    private func forgetting(_ generator: inout SeededGenerator) -> VictimOrders.Forgetting {
        let leaked = UInt32.random(in: 0...500, using: &generator)
        let leaks = Bool.random(using: &generator)
        return VictimOrders.Forgetting(leakedPerMille: leaks ? leaked : 0, seed: generator.next())
    }

    // MARK: Processes

    private func kill(_ kill: Kill, _ orders: VictimOrders, run: Int, _ record: CrashRecord) async throws {
        let process = try Subprocess(Self.program, [try orders.argument])
        if kill.isAfterReady {
            try await process.output.wait { $0.contains { !$0.isEmpty } }
        }
        try await Task.sleep(for: kill.delay)
        process.signal(SIGKILL)
        let outcome = try await process.outcome()
        note(outcome, run: run, record)
        let copy = try await CrashStoreCopy.reading(orders.directory, scratch: parent)
        record.note { $0.killed(run: run, rows: copy.rows, integrity: copy.integrity) }
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

    private func drain(_ orders: VictimOrders, _ record: CrashRecord) async throws {
        var orders = orders
        orders.mode = .drain
        orders.forgetting = nil
        let process = try Subprocess(Self.program, [try orders.argument])
        let alarm = Task {
            try await Task.sleep(for: .seconds(120))
            process.signal(SIGKILL)
        }
        let outcome = try await process.outcome()
        alarm.cancel()
        if outcome.ending != .exited(0) {
            record.note { $0.ended(run: kills, words: "\(outcome.ending): \(outcome.output)") }
        }
        let copy = try await CrashStoreCopy.reading(orders.directory, scratch: parent)
        record.note { $0.drained(rows: copy.rows) }
    }
}
