internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import NetwatchTransport

/// A series of consecutive seeds that run in one process, with one engine and one server.
struct CompletionSeries {
    /// The number of seeds that run first, without a check for leaks. They open descriptors that stay open, for example
    /// those of Dispatch.
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
            // What one seed has left behind must not be reported again for the next seed.
            if !violations.isEmpty { environment.recordBaseline() }
            counts.add(run.counts)
            // One detected fault is enough, and each detection takes the whole timeout.
            if options.fault != nil, !violations.isEmpty { break }
        }
        ClientTestProcess.say("done \(counts.line)")
        // A faulty seed may have waits that never end, and leaks that the leak check of exit(3) would report.
        if options.fault != nil { _exit(0) }
        exit(0)
    }
}

/// How much work the seeds have done, and how often the rare cases occurred.
package struct CompletionCounts: Sendable {
    package var seeds = 0
    package var requests = 0
    package var handlers = 0
    package var waits = 0
    package var retries = 0
    /// The number of failed requests that their owner finished, and the number of those withdrawn from their owner.
    package var finishedByOwner = 0
    package var withdrawals = 0
    /// The numbers of requests that a queue has stored: with `queueIfOffline`, with `queuesFailedRequests`, and from
    /// background sessions.
    package var storedByRequest = 0
    package var storedBySession = 0
    package var storedInBackground = 0
    /// How often the route to the server was removed, how many attempts failed because there was no network, and how
    /// many of these were retried.
    package var routeLosses = 0
    package var offline = 0
    package var retriesAfterOffline = 0
    /// The number of attempts that ended because the server was not trusted.
    package var refusals = 0
    package var reports = 0
    /// How often the client called each hook, and how many of the calls acted. The index is the raw value of the hook.
    var hookCalls = [Int](repeating: 0, count: CompletionHook.allCases.count)
    var hookActions = [Int](repeating: 0, count: CompletionHook.allCases.count)

    package init() {}

    package func calls(of hook: CompletionHook) -> Int { hookCalls[hook.rawValue] }

    /// The number of calls in which the program acted on a request or on the session.
    package func actions(of hook: CompletionHook) -> Int { hookActions[hook.rawValue] }

    private static let fields: [any WritableKeyPath<CompletionCounts, Int> & Sendable] = [
        \.seeds, \.requests, \.handlers, \.waits, \.retries, \.finishedByOwner, \.withdrawals,
        \.storedByRequest, \.storedBySession, \.storedInBackground, \.routeLosses, \.offline,
        \.retriesAfterOffline, \.refusals, \.reports,
    ]

    /// Parses a value of ``line``. Returns `nil` for any other text.
    package init?(line: Substring) {
        let numbers = line.split(separator: " ").compactMap { Int($0) }
        let hooks = CompletionHook.allCases.count
        guard numbers.count == Self.fields.count + 2 * hooks else { return nil }
        for (field, number) in zip(Self.fields, numbers) { self[keyPath: field] = number }
        hookCalls = Array(numbers.suffix(2 * hooks).prefix(hooks))
        hookActions = Array(numbers.suffix(hooks))
    }

    package mutating func add(_ other: CompletionCounts) {
        for field in Self.fields { self[keyPath: field] += other[keyPath: field] }
        for hook in CompletionHook.allCases.map(\.rawValue) {
            hookCalls[hook] += other.hookCalls[hook]
            hookActions[hook] += other.hookActions[hook]
        }
    }

    var line: String {
        let numbers = Self.fields.map { self[keyPath: $0] } + hookCalls + hookActions
        return numbers.map { "\($0)" }.joined(separator: " ")
    }
}

extension CompletionCounts: CustomStringConvertible {
    package var description: String {
        """
        \(seeds) seeds, \(requests) requests, \(retries) retries, \(finishedByOwner) finished by their owner, \
        \(withdrawals) withdrawn, \(storedByRequest + storedBySession + storedInBackground) stored in a queue (\(storedBySession) of a \
        queuing session, \(storedInBackground) of a background session), \(routeLosses) route losses, \
        \(offline) attempts without a route, \
        \(retriesAfterOffline) of them retried, \(refusals) servers refused, \(handlers) handlers, \(waits) waits, \
        \(reports) progress reports, \(hookCalls.reduce(0, +)) calls of the program's code with \
        \(hookActions.reduce(0, +)) actions
        """
    }
}
