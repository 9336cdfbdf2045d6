internal import Glibc
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchEventLoop

/// A model test of the resolver: random calls with virtual time, after each of which the invariants must hold.
private struct ResolverModel {
    private static let slow = 0..<40
    private static let names = 0..<60
    private static let threads = 16

    private var resolver: SimulatedResolver
    private var generator: SeededGenerator
    /// The times at which the running lookups will end, in the order of the resolver.
    private var ends: [(question: ResolverCore.Question, due: BootInstant, wasSlow: Bool)] = []
    private var asked: Set<ResolverCore.CallerID> = []
    private var abandoned: Set<ResolverCore.CallerID> = []
    private(set) var violations: [String] = []

    init(seed: UInt64, faults: ResolverFaults) {
        resolver = SimulatedResolver(threads: Self.threads, names: 50, faults: faults)
        generator = SeededGenerator(seed: seed)
    }

    mutating func run(steps: Int) {
        for _ in 0..<steps where violations.isEmpty {
            step()
            noteStarts()
            checkPool()
        }
        // All lookups end eventually.
        while violations.isEmpty, !ends.isEmpty { pass(.seconds(10)) }
        checkAnswers()
    }

    private mutating func step() {
        switch Int.random(in: 0..<20, using: &generator) {
        case 0..<9: ask(.needed)
        case 9..<12: ask(.refresh)
        case 12..<15: abandonOne()
        case 15 where Int.random(in: 0..<20, using: &generator) == 0: resolver.renew()
        default: pass(.milliseconds(Int.random(in: 0..<1000, using: &generator)))
        }
    }

    private mutating func ask(_ urgency: NameResolver.Urgency) {
        let name = Int.random(in: Self.names, using: &generator)
        asked.insert(resolver.ask("\(name)", urgency))
    }

    private mutating func abandonOne() {
        let waiting = asked.filter { resolver.answers[$0] == nil && !abandoned.contains($0) }.sorted()
        guard let caller = waiting.randomElement(using: &generator) else { return }
        abandoned.insert(caller)
        _ = resolver.abandon(caller)
    }

    /// Advances the time and ends the lookups that are due.
    private mutating func pass(_ duration: Duration) {
        let end = resolver.now + duration
        noteStarts()
        while let next = ends.min(by: { $0.due < $1.due }), next.due <= end {
            resolver.advance(by: max(.zero, next.due - resolver.now))
            ends.removeAll { $0.question == next.question }
            resolver.end(next.question, outcome(of: next.question.name))
            noteStarts()
        }
        resolver.advance(by: end - resolver.now)
        noteStarts()
    }

    private mutating func outcome(of name: String) -> NameResolver.Outcome {
        if isSlow(name) { return .failure(.init(code: EAI_AGAIN)) }
        if Int.random(in: 0..<10, using: &generator) == 0 { return .failure(.init(code: EAI_NONAME)) }
        return .success([IPAddress("192.0.2.\(name)")!])
    }

    private func isSlow(_ name: String) -> Bool { Self.slow.contains(Int(name)!) }

    private mutating func noteStarts() {
        for question in resolver.running where !ends.contains(where: { $0.question == question }) {
            let milliseconds = isSlow(question.name) ? 10_000 : Int.random(in: 1..<200, using: &generator)
            let wasSlow = resolver.core.cache.isSlow(question.name) == true
            ends.append((question, resolver.now + .milliseconds(milliseconds), wasSlow))
        }
    }

    // MARK: Invariants

    private mutating func checkPool() {
        let pool = resolver.core.pool
        expect(pool.threads <= Self.threads, "\(pool.threads) threads")
        expect(pool.threads == resolver.running.count, "a thread without a lookup did not exit")
        let slow = ends.count { $0.wasSlow }
        expect(slow <= Self.threads / 2, "\(slow) threads look up slow names")
        let isKnownWaiting = pool.queue.count(of: .known) > 0
        expect(!isKnownWaiting || pool.threads == Self.threads, "a fast name waits for a thread")
        for question in resolver.core.pendingLookups.keys where !pool.isRunning(question) {
            let pending = resolver.core.pendingLookups[question]!
            expect(
                pending.continuesWithoutCallers || !pending.callers.isEmpty,
                "`\(question.name)` waits without a caller"
            )
        }
    }

    /// Checks that each caller gets one answer, unless it has abandoned its lookup.
    private mutating func checkAnswers() {
        for caller in asked.sorted() {
            let isAnswered = resolver.answers[caller] != nil
            expect(isAnswered != abandoned.contains(caller), "caller \(caller) answered: \(isAnswered)")
        }
        expect(resolver.core.pool.threads == 0, "a thread without work did not exit")
    }

    private mutating func expect(_ isLawful: Bool, _ violation: @autoclosure () -> String) {
        if !isLawful { violations.append(violation()) }
    }
}

@Suite struct ResolverModelTests {
    private static let seeds: Range<UInt64> = 0..<CheckSize.choose(small: 50, medium: 300, full: 5000)

    private func violations(seed: UInt64, faults: ResolverFaults = ResolverFaults()) -> [String] {
        var model = ResolverModel(seed: seed, faults: faults)
        model.run(steps: 400)
        return model.violations
    }

    @Test func `each caller gets one answer, and slow names leave threads for others`() {
        let chosen = getenv("NETWATCH_SEED").flatMap { UInt64(String(cString: $0)) }
        for seed in chosen.map({ $0..<($0 + 1) }) ?? Self.seeds {
            let violations = violations(seed: seed)
            #expect(violations == [], "NETWATCH_SEED=\(seed)")
        }
    }

    @Test func `the model detects a pool that ignores slow names`() {
        var faults = ResolverFaults()
        faults.ignoresSlowNames = true
        #expect(Self.seeds.contains { !violations(seed: $0, faults: faults).isEmpty })
    }

    @Test func `the model detects abandoned questions that stay in the queue`() {
        var faults = ResolverFaults()
        faults.keepsAbandonedLookups = true
        #expect(Self.seeds.contains { !violations(seed: $0, faults: faults).isEmpty })
    }
}
