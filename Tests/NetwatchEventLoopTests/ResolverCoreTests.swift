internal import Glibc
internal import Testing

@testable internal import NetwatchEventLoop

/// A resolver with virtual time. The test controls its threads.
struct SimulatedResolver {
    var core: ResolverCore
    private(set) var now = BootInstant.now
    /// The questions that the threads are looking up.
    private(set) var running: [ResolverCore.Question] = []
    private(set) var answers: [ResolverCore.CallerID: NameResolver.Outcome] = [:]

    init(threads: Int = 8, names: Int = ResolverTimes.maximumNames, faults: ResolverFaults = ResolverFaults())
    {
        core = ResolverCore(threads: threads, names: names, faults: faults)
    }

    var runningNames: [String] { running.map(\.name) }

    @discardableResult
    mutating func ask(_ name: String, _ urgency: NameResolver.Urgency = .needed) -> ResolverCore.CallerID {
        let (caller, outcome) = core.resolve(name, urgency, now: now)
        if let outcome { answers[caller] = outcome }
        startThreads()
        return caller
    }

    private mutating func startThreads() {
        for _ in 0..<core.grow(now: now) { takeNext() }
    }

    private mutating func takeNext() {
        if let question = core.takeNext(now: now) { running.append(question) }
    }

    /// Ends the oldest running lookup of a name. The thread then takes the next question.
    mutating func end(_ name: String, _ outcome: NameResolver.Outcome) {
        end(running.first { $0.name == name }!, outcome)
    }

    mutating func end(_ question: ResolverCore.Question, _ outcome: NameResolver.Outcome) {
        running.removeAll { $0 == question }
        note(core.end(question, outcome, now: now))
        takeNext()
        startThreads()
    }

    mutating func abandon(_ caller: ResolverCore.CallerID) -> Bool { core.abandon(caller) }

    mutating func renew() {
        core.renew()
        startThreads()
    }

    mutating func advance(by duration: Duration) {
        let end = now + duration
        while let due = core.nextDue, due <= end {
            now = max(now, due)
            note(core.takeDue(now: now))
            startThreads()
        }
        now = end
    }

    private mutating func note(_ deliveries: [ResolverCore.Delivery]) {
        for delivery in deliveries {
            precondition(answers[delivery.caller] == nil, "caller \(delivery.caller) got two answers")
            answers[delivery.caller] = delivery.outcome
        }
    }
}

@Suite struct ResolverCoreTests {
    private var resolver = SimulatedResolver()
    private let found = NameResolver.Outcome.success([IPAddress("192.0.2.1")!])
    private let other = NameResolver.Outcome.success([IPAddress("192.0.2.2")!])
    private let noAnswer = NameResolver.Outcome.failure(.init(code: EAI_AGAIN))
    private let noSuchName = NameResolver.Outcome.failure(.init(code: EAI_NONAME))

    /// Looks up a name as a refresh, and ends the lookup with this outcome.
    private mutating func answer(_ outcome: NameResolver.Outcome, about name: String = "a") {
        resolver.ask(name, .refresh)
        resolver.end(name, outcome)
    }

    private mutating func recordSlowLookups(of names: [String]) {
        for name in names { resolver.ask(name, .refresh) }
        resolver.advance(by: .seconds(10))
        for name in names { resolver.end(name, noAnswer) }
    }

    /// Returns the answer that a caller gets without a lookup; `nil` if it must wait.
    private mutating func cached(_ name: String = "a") -> NameResolver.Outcome? {
        let caller = resolver.ask(name)
        defer { _ = resolver.abandon(caller) }
        return resolver.answers[caller]
    }

    @Test mutating func `callers that need an answer get it from the cache for 30 s`() {
        answer(found)
        resolver.advance(by: .milliseconds(29_999))
        #expect(cached() == found)
        let caller = resolver.ask("a", .refresh)
        #expect(resolver.runningNames == ["a"])
        resolver.end("a", other)
        #expect(resolver.answers[caller] == other)
        #expect(cached() == other)
        resolver.advance(by: .seconds(30))
        #expect(cached() == nil)
    }

    @Test(arguments: [(EAI_NONAME, 5000), (EAI_FAIL, 5000), (EAI_AGAIN, 1000)])
    mutating func `a failure is cached for a few seconds`(code: CInt, milliseconds: Int) {
        let failure = NameResolver.Outcome.failure(.init(code: code))
        answer(failure)
        resolver.advance(by: .milliseconds(milliseconds - 1))
        #expect(cached() == failure)
        resolver.advance(by: .milliseconds(1))
        #expect(cached() == nil)
    }

    @Test mutating func `a local shortage is not cached and evicts no answer`() {
        let shortage = NameResolver.Outcome.failure(.init(code: EAI_SYSTEM, errno: EMFILE))
        answer(shortage)
        #expect(cached() == nil)
        resolver.end("a", found)
        answer(shortage)
        #expect(cached() == found)
    }

    @Test mutating func `a stale answer is returned after 1.8 s, and the lookup continues`() {
        answer(found)
        resolver.advance(by: .seconds(60))
        let caller = resolver.ask("a")
        resolver.advance(by: .milliseconds(1799))
        #expect(resolver.answers[caller] == nil)
        resolver.advance(by: .milliseconds(1))
        #expect(resolver.answers[caller] == found)
        #expect(cached() == found, "the lookup has already taken longer than 1.8 s")
        resolver.end("a", other)
        #expect(cached() == other)
    }

    @Test mutating func `a refresh gets no stale answer`() {
        answer(found)
        resolver.advance(by: .seconds(60))
        let caller = resolver.ask("a", .refresh)
        resolver.advance(by: .seconds(9))
        #expect(resolver.answers[caller] == nil)
        resolver.end("a", noAnswer)
        #expect(resolver.answers[caller] == noAnswer)
    }

    @Test
    mutating func
        `while name servers fail, a stale answer is returned immediately and they are asked every 30 s`()
    {
        answer(found)
        resolver.advance(by: .seconds(60))
        answer(noAnswer)
        #expect(cached() == found)
        #expect(resolver.running.isEmpty)
        resolver.advance(by: .seconds(29))
        #expect(cached() == found)
        #expect(resolver.running.isEmpty)
        resolver.advance(by: .seconds(1))
        #expect(cached() == found)
        #expect(resolver.runningNames == ["a"])
        #expect(cached() == found)
        #expect(resolver.runningNames == ["a"])
        resolver.end("a", noAnswer)
        #expect(cached() == found)
        #expect(resolver.running.isEmpty)
    }

    @Test mutating func `a stale answer is at most an hour old`() {
        answer(found)
        resolver.advance(by: .seconds(3599))
        answer(noAnswer)
        #expect(cached() == found)
        resolver.advance(by: .seconds(1))
        #expect(cached() == nil)
    }

    @Test mutating func `an authoritative failure ends the use of stale answers`() {
        answer(found)
        resolver.advance(by: .seconds(60))
        answer(noSuchName)
        #expect(cached() == noSuchName)
        answer(noAnswer)
        resolver.advance(by: .seconds(1))
        #expect(cached() == nil)
    }

    @Test mutating func `a renewal empties the cache, and no caller waits for an older lookup`() {
        answer(found)
        resolver.renew()
        let before = resolver.ask("a")
        resolver.renew()
        let after = resolver.ask("a")
        #expect(resolver.runningNames == ["a", "a"])
        resolver.end("a", found)
        #expect(resolver.answers[before] == nil)
        resolver.end("a", other)
        #expect(resolver.answers[before] == other && resolver.answers[after] == other)
        #expect(cached() == other)
    }

    @Test mutating func `names that were slow recently use at most half of the pool`() {
        let slow = (0..<6).map { "slow\($0)" }
        recordSlowLookups(of: slow)
        resolver.advance(by: .seconds(60))
        for name in slow { resolver.ask(name) }
        #expect(resolver.running.count == 4)
        for name in ["b", "c", "d"] { resolver.ask(name) }
        #expect(resolver.runningNames.suffix(3) == ["b", "c", "d"])
    }

    @Test mutating func `a long lookup counts as slow, whatever its rank`() {
        for number in 0..<5 { resolver.ask("new\(number)") }
        resolver.advance(by: .seconds(2))
        resolver.ask("a", .refresh)
        resolver.ask("b", .refresh)
        #expect(resolver.running.count == 6, "refreshes of new names may use six of eight threads")
        resolver.end("a", found)
        resolver.advance(by: .seconds(30))
        resolver.ask("a", .refresh)
        #expect(resolver.core.pool.queue.count == 1)
        resolver.ask("a")
        #expect(resolver.runningNames.last == "a", "a caller waits for it, and its last lookup was fast")
    }

    @Test mutating func `needed lookups run before refreshes, and move a refresh of their name forward`() {
        var resolver = SimulatedResolver(threads: 1)
        resolver.ask("first")
        resolver.ask("a", .refresh)
        resolver.ask("b", .refresh)
        resolver.ask("c")
        resolver.ask("b")
        var order: [String] = []
        while let name = resolver.runningNames.first {
            order.append(name)
            resolver.end(name, found)
        }
        #expect(order == ["first", "c", "b", "a"])
    }

    @Test mutating func `an abandoned question leaves the queue unless another caller waits for it`() {
        var resolver = SimulatedResolver(threads: 1)
        let first = resolver.ask("first")
        let waiting = resolver.ask("a")
        let shared = [resolver.ask("b"), resolver.ask("b")]
        #expect(resolver.abandon(first) == false, "a thread had started the lookup")
        #expect(resolver.abandon(waiting) == true)
        #expect(resolver.abandon(shared[0]) == true)
        #expect(resolver.abandon(shared[0]) == false, "the caller had abandoned it before")
        resolver.end("first", found)
        #expect(resolver.runningNames == ["b"])
        resolver.end("b", other)
        #expect(resolver.answers == [shared[1]: other])
    }

    @Test func `repeated abandoned lookups do not accumulate`() {
        var queue = LookupQueue<Int>()
        for number in 0..<100_000 {
            queue.insert(number, .first)
            queue.remove(number)
        }
        queue.insert(-1, .first)
        #expect(queue.entryCount < 100)
        #expect(queue.removeAll() == [-1])
    }

    @Test mutating func `at most 64 addresses are kept, without duplicates`() {
        let addresses = (0..<200).map { IPAddress("192.0.2.\($0 / 2)")! }
        answer(.success(addresses))
        let kept = try? cached()?.get()
        #expect(kept?.map(\.description) == (0..<64).map { "192.0.2.\($0)" })
    }

    @Test mutating func `the least recently used names are evicted first`() {
        resolver = SimulatedResolver(names: 8)
        for number in 0..<8 { answer(found, about: "\(number)") }
        #expect(cached("0") == found)
        answer(found, about: "8")
        #expect(resolver.core.cache.entries.keys.sorted() == ["0", "3", "4", "5", "6", "7", "8"])
    }

    @Test mutating func `a thread that cannot be started matters only if there is no other thread`() {
        var core = ResolverCore(threads: 8)
        let now = BootInstant.now
        for name in ["a", "b"] { _ = core.resolve(name, .needed, now: now) }
        #expect(core.grow(now: now) == 2)
        #expect(core.threadFailed(.init(code: EAI_SYSTEM, errno: EAGAIN), now: now) == [])
        let failed = core.threadFailed(.init(code: EAI_SYSTEM, errno: EAGAIN), now: now)
        #expect(failed.map(\.caller) == [1, 2])
    }

    @Test
    mutating func
        `the snapshot shows names with their states and ages, and how long no name server has answered`()
    {
        answer(found, about: "fresh")
        answer(noSuchName, about: "missing")
        resolver.advance(by: .seconds(3))
        recordSlowLookups(of: ["slow"])
        resolver.ask("new")
        let snapshot = ResolverSnapshot(resolver.core, now: resolver.now)
        #expect(snapshot.names.map(\.name) == ["fresh", "missing", "new", "slow"])
        #expect(snapshot.names.map(\.state) == [.fresh, .failed, .resolving, .failed])
        #expect(snapshot.names.map(\.isSlow) == [false, false, false, true])
        #expect(snapshot.names[0].age == .seconds(13))
        #expect(snapshot.unresponsive == .zero && snapshot.threads == 1)
    }

    @Test mutating func `a network change ends the period without answers`() {
        recordSlowLookups(of: ["slow"])
        #expect(ResolverSnapshot(resolver.core, now: resolver.now).unresponsive != nil)
        resolver.renew()
        #expect(ResolverSnapshot(resolver.core, now: resolver.now).unresponsive == nil)
    }
}
