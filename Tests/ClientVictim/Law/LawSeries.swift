internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import NetwatchTransport

/// Seeds one after another, in one process with one engine and one server.
struct LawSeries {
    /// Seeds that are run first and not looked at: they open what stays open, Dispatch's own descriptors for one.
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
            // What one seed has left is not the next one's.
            if !violations.isEmpty { world.takeStock() }
            tally.add(run.tally)
            // To be noticed once is enough, and takes all patience.
            if orders.breakage != nil, !violations.isEmpty { break }
        }
        ClientVictim.say("done \(tally.line)")
        // What a broken seed still waits for never comes.
        exit(0)
    }
}

/// How much was done.
package struct LawTally: Sendable {
    package var seeds = 0
    package var requests = 0
    package var handlers = 0
    package var waits = 0
    package var retries = 0
    /// How many failed requests their owner has finished, and how many were taken from it.
    package var handOvers = 0
    package var withdrawals = 0
    /// How often the way to the server was taken away, attempts failed because of it, and were made again when it was
    /// back.
    package var losses = 0
    package var offline = 0
    package var awakenings = 0
    /// How many attempts ended with a server that was not trusted.
    package var refusals = 0
    package var reports = 0

    package init() {}

    private static let fields: [any WritableKeyPath<LawTally, Int> & Sendable] = [
        \.seeds, \.requests, \.handlers, \.waits, \.retries, \.handOvers, \.withdrawals, \.losses,
        \.offline, \.awakenings, \.refusals, \.reports,
    ]

    /// - Parameter line: What ``line`` was; `nil` for anything else.
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
