internal import Foundation
internal import NetwatchTestSupport

/// What one or more series of kills came to; its description is a line for docs/evidence.md.
struct CrashFigures: Sendable {
    /// Somewhere that processes were to kill themselves.
    struct Place: Sendable {
        var visits = 0
        var reached = 0
    }

    var kills = 0
    var accepted = 0
    var lost = 0
    var delivered = 0
    var attempts = 0
    /// Successful answers to requests that had been answered so before.
    var duplicates = 0
    /// Requests in flight at kills, of all kills together.
    var inFlight = 0
    /// Requests to be sent at most once that nobody knows the fate of.
    var heldAtMostOnce = 0
    var violations: [CrashLedger.Violation] = []
    var killsAfterAcceptance = 0
    /// Of those, the ones that lost something.
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

/// From which seed the kills and power cuts are drawn.
enum CrashScale {
    /// `NETWATCH_SEED` replays one.
    static let seed: UInt64 =
        ProcessInfo.processInfo.environment["NETWATCH_SEED"].flatMap(UInt64.init)
        ?? UInt64.random(in: 0 ... .max)
}

extension CrashSeries {
    /// Runs the kills in parts, each with a queue of its own, two beside each other: there are rarely more cores.
    func runInParts(of size: Int) async throws -> CrashFigures {
        try await withThrowingTaskGroup(of: CrashFigures.self) { group in
            var figures = CrashFigures()
            for (index, start) in stride(from: 0, to: kills, by: size).enumerated() {
                var part = self
                part.seed = seed &+ UInt64(index)
                part.kills = min(size, kills - start)
                // A file system on a disk commits at other moments than one in memory.
                if CheckSize.current == .full, !index.isMultiple(of: 2) { part.parent = "/var/tmp" }
                if index >= 2, let finished = try await group.next() { figures = figures + finished }
                group.addTask { [part] in try await part.run().figures }
            }
            for try await finished in group { figures = figures + finished }
            return figures
        }
    }
}
