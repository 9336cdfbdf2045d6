internal import Foundation
internal import NetwatchTestSupport

/// The results of one or more crash series. The description is a line for docs/evidence.md.
struct CrashFigures: Sendable {
    /// The counts for one crash point: the processes that should have killed themselves there (`visits`), and those
    /// that did (`reached`).
    struct Place: Sendable {
        var visits = 0
        var reached = 0
    }

    var kills = 0
    var accepted = 0
    var lost = 0
    var delivered = 0
    var attempts = 0
    /// The number of successful responses to requests that had already received one.
    var duplicates = 0
    /// The total number of requests that were in flight at a kill.
    var inFlight = 0
    /// The number of at-most-once requests that are held because their outcome is unknown.
    var heldAtMostOnce = 0
    var violations: [CrashLedger.Violation] = []
    var killsAfterAcceptance = 0
    /// The number of kills that lost an accepted request.
    var lossyKills = 0
    var places: [String: Place] = [:]

    static func + (left: CrashFigures, right: CrashFigures) -> CrashFigures {
        var sum = left
        for path in Self.numbers { sum[keyPath: path] += right[keyPath: path] }
        sum.violations += right.violations
        sum.places.merge(right.places) {
            Place(visits: $0.visits + $1.visits, reached: $0.reached + $1.reached)
        }
        return sum
    }

    private static var numbers: [WritableKeyPath<CrashFigures, Int>] {
        [
            \.kills, \.accepted, \.lost, \.delivered, \.attempts, \.duplicates, \.inFlight,
            \.killsAfterAcceptance,
            \.lossyKills, \.heldAtMostOnce,
        ]
    }
}

extension CrashFigures: CustomStringConvertible {
    var description: String {
        let places = places.sorted { $0.key < $1.key }.map { "\($0) \($1.reached) of \($1.visits)" }
        return "\(kills) kills (\(places.joined(separator: ", "))), \(accepted) accepted, \(lost) lost, "
            + "\(delivered) delivered in \(attempts) attempts, \(duplicates) answered twice of \(inFlight) in flight "
            + "at kills, \(heldAtMostOnce) held rather than sent twice, \(violations.count) violations"
    }
}

/// The seed of the crash tests.
enum CrashScale {
    /// The value of the environment variable `NETWATCH_SEED`, which repeats an earlier run, or a random number.
    static let seed: UInt64 =
        ProcessInfo.processInfo.environment["NETWATCH_SEED"].flatMap(UInt64.init)
        ?? UInt64.random(in: 0 ... .max)
}

extension CrashSeries {
    /// Runs the kills in parts, each with its own queue. Two parts run at the same time, because machines rarely have
    /// more idle cores.
    func runInParts(of size: Int) async throws -> CrashFigures {
        try await withThrowingTaskGroup(of: CrashFigures.self) { group in
            var figures = CrashFigures()
            for (index, start) in stride(from: 0, to: kills, by: size).enumerated() {
                var part = self
                part.seed = seed &+ UInt64(index)
                part.kills = min(size, kills - start)
                // Every second part runs on a disk, because its file system writes at other times than one in memory.
                if CheckSize.current == .full, !index.isMultiple(of: 2) { part.parent = "/var/tmp" }
                if index >= 2, let finished = try await group.next() { figures = figures + finished }
                group.addTask { [part] in try await part.run().figures }
            }
            for try await finished in group { figures = figures + finished }
            return figures
        }
    }
}
