internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import NetwatchTransport

/// Consecutive seeds in one process, with one engine and one server.
struct LawSeries {
    /// The number of seeds that run first without a check. They open what stays open, for example Dispatch's
    /// descriptors.
    private static let rehearsals: UInt64 = 8

    private let orders: LawOrders
    private let world: LawWorld

    init(_ orders: LawOrders) throws {
        self.orders = orders
        world = try LawWorld(orders.tls)
    }

    func run() async throws {
        for seed in 0..<Self.rehearsals {
            await LawRun(seed: .max - seed, world, nil, patience: orders.patience).carryOut()
        }
        world.takeStock()
        var tally = LawTally()
        for seed in orders.firstSeed..<orders.firstSeed + UInt64(orders.count) {
            ClientVictim.say("seed \(seed)")
            let run = LawRun(seed: seed, world, orders.breakage, patience: orders.patience)
            let violations = await run.run()
            for violation in violations { ClientVictim.say("NETWATCH_SEED=\(seed): \(violation)") }
            // The leftovers of one seed must not be reported again for the next.
            if !violations.isEmpty { world.takeStock() }
            tally.add(run.tally)
            // One detection is enough, and each takes the whole timeout.
            if orders.breakage != nil, !violations.isEmpty { break }
        }
        ClientVictim.say("done \(tally.line)")
        // A broken seed may have waits that never end.
        exit(0)
    }
}

/// The amount of work done.
package struct LawTally: Sendable {
    package var seeds = 0
    package var requests = 0
    package var handlers = 0
    package var waits = 0
    package var retries = 0
    /// The number of failed requests that their owner finished, and of those withdrawn from it.
    package var handOvers = 0
    package var withdrawals = 0
    /// How often the route to the server was removed, how many attempts failed because of that, and how many were
    /// retried after that.
    package var losses = 0
    package var offline = 0
    package var awakenings = 0
    /// The number of attempts that ended because the server was not trusted.
    package var refusals = 0
    package var reports = 0

    package init() {}

    private static let fields: [any WritableKeyPath<LawTally, Int> & Sendable] = [
        \.seeds, \.requests, \.handlers, \.waits, \.retries, \.handOvers, \.withdrawals, \.losses,
        \.offline, \.awakenings, \.refusals, \.reports,
    ]

    /// - Parameter line: The value of ``line``. Any other text returns `nil`.
    package init?(line: Substring) {
        let numbers = line.split(separator: " ").compactMap { Int($0) }
        guard numbers.count == Self.fields.count else { return nil }
        for (field, number) in zip(Self.fields, numbers) { self[keyPath: field] = number }
    }

    package mutating func add(_ other: LawTally) {
        for field in Self.fields { self[keyPath: field] += other[keyPath: field] }
    }

    var line: String { Self.fields.map { "\(self[keyPath: $0])" }.joined(separator: " ") }
}

extension LawTally: CustomStringConvertible {
    package var description: String {
        """
        \(seeds) seeds, \(requests) requests tried again \(retries) times, \(handOvers) handed over, \(withdrawals) \
        taken back, \(losses) times the way was lost, \(offline) attempts without one, \(awakenings) made again for \
        it, \(refusals) servers refused, \(handlers) handlers, \(waits) waits, \(reports) reports of progress
        """
    }
}
