internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import NetwatchTransport

/// Consecutive seeds in one process, with one engine and one server.
struct CompletionSeries {
    /// The number of seeds that run first without a check. They open what stays open, for example Dispatch's
    /// descriptors.
    private static let rehearsals: UInt64 = 8

    private let options: CompletionOptions
    private let environment: CompletionEnvironment

    init(_ options: CompletionOptions) throws {
        self.options = options
        environment = try CompletionEnvironment(options.tls)
    }

    func run() async throws {
        for seed in 0..<Self.rehearsals {
            await CompletionRun(seed: .max - seed, environment, nil, timeout: options.timeout).carryOut()
        }
        environment.recordBaseline()
        var counts = CompletionCounts()
        for seed in options.firstSeed..<options.firstSeed + UInt64(options.count) {
            ClientTestProcess.say("seed \(seed)")
            let run = CompletionRun(seed: seed, environment, options.fault, timeout: options.timeout)
            let violations = await run.run()
            for violation in violations { ClientTestProcess.say("NETWATCH_SEED=\(seed): \(violation)") }
            // The leftovers of one seed must not be reported again for the next.
            if !violations.isEmpty { environment.recordBaseline() }
            counts.add(run.counts)
            // One detection is enough, and each takes the whole timeout.
            if options.fault != nil, !violations.isEmpty { break }
        }
        ClientTestProcess.say("done \(counts.line)")
        // A broken seed may have waits that never end.
        exit(0)
    }
}

/// The amount of work done.
package struct CompletionCounts: Sendable {
    package var seeds = 0
    package var requests = 0
    package var handlers = 0
    package var waits = 0
    package var retries = 0
    /// The number of failed requests that their owner finished, and of those withdrawn from it.
    package var finishedByOwner = 0
    package var withdrawals = 0
    /// How often the route to the server was removed, how many attempts failed because of that, and how many were
    /// retried after that.
    package var routeLosses = 0
    package var offline = 0
    package var retriesAfterOffline = 0
    /// The number of attempts that ended because the server was not trusted.
    package var refusals = 0
    package var reports = 0

    package init() {}

    private static let fields: [any WritableKeyPath<CompletionCounts, Int> & Sendable] = [
        \.seeds, \.requests, \.handlers, \.waits, \.retries, \.finishedByOwner, \.withdrawals, \.routeLosses,
        \.offline, \.retriesAfterOffline, \.refusals, \.reports,
    ]

    /// - Parameter line: The value of ``line``. Any other text returns `nil`.
    package init?(line: Substring) {
        let numbers = line.split(separator: " ").compactMap { Int($0) }
        guard numbers.count == Self.fields.count else { return nil }
        for (field, number) in zip(Self.fields, numbers) { self[keyPath: field] = number }
    }

    package mutating func add(_ other: CompletionCounts) {
        for field in Self.fields { self[keyPath: field] += other[keyPath: field] }
    }

    var line: String { Self.fields.map { "\(self[keyPath: $0])" }.joined(separator: " ") }
}

extension CompletionCounts: CustomStringConvertible {
    package var description: String {
        """
        \(seeds) seeds, \(requests) requests, \(retries) retries, \(finishedByOwner) finished by their owner, \
        \(withdrawals) withdrawn, \(routeLosses) route losses, \(offline) attempts without a route, \
        \(retriesAfterOffline) of them retried, \(refusals) servers refused, \(handlers) handlers, \(waits) waits, \
        \(reports) progress reports
        """
    }
}
