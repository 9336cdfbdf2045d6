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
        world = try LawWorld()
    }

    func run() async throws {
        for seed in 0..<Self.rehearsals {
            await LawRun(seed: .max - seed, world, nil, patience: orders.patience).rehearse()
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
    package var reports = 0

    package init() {}

    /// - Parameter line: What ``line`` was; `nil` for anything else.
    package init?(line: Substring) {
        let numbers = line.split(separator: " ").compactMap { Int($0) }
        guard numbers.count == 6 else { return nil }
        (seeds, requests, handlers) = (numbers[0], numbers[1], numbers[2])
        (waits, retries, reports) = (numbers[3], numbers[4], numbers[5])
    }

    package mutating func add(_ other: LawTally) {
        seeds += other.seeds
        requests += other.requests
        handlers += other.handlers
        waits += other.waits
        retries += other.retries
        reports += other.reports
    }

    var line: String { "\(seeds) \(requests) \(handlers) \(waits) \(retries) \(reports)" }
}

extension LawTally: CustomStringConvertible {
    package var description: String {
        """
        \(seeds) seeds, \(requests) requests tried again \(retries) times, \(handlers) handlers, \(waits) waits, \
        \(reports) reports of progress
        """
    }
}
