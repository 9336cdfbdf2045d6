internal import NetwatchEventLoop
internal import Testing

@testable internal import NetworkReachability

/// A ``NameResolution`` with the turns of its lookups. The test ends each lookup with an outcome of its choice.
private struct ScriptedResolution {
    var resolution: NameResolution
    var turns = LookupTurns(perSecond: 20)
    let start = BootInstant.now
    var now: BootInstant
    /// The lookups that have not ended yet.
    private(set) var lookups: [NameResolution.Lookup] = []

    init(interval: Duration = .seconds(30)) {
        now = start
        resolution = NameResolution(name: "a.example", interval: interval, now: now)
    }

    /// Requests a lookup. Returns whether it started immediately.
    @discardableResult
    mutating func ask(_ cause: NameResolution.Cause = .schedule) -> Bool {
        guard let kind = resolution.request(cause) else { return false }
        turns.add(resolution.name, kind)
        while let name = turns.takeNext(now: now) {
            guard name == resolution.name else { continue }
            lookups.append(resolution.begin())
            return true
        }
        return false
    }

    /// Makes refreshes of other names wait.
    mutating func wait(behind count: Int) {
        for number in 0..<count { turns.add("other\(number).example", .refresh) }
    }

    /// Ends the oldest lookup. Returns whether another lookup must be requested.
    @discardableResult
    mutating func end(_ outcome: NameResolver.Outcome, random: Double = 0.5) -> Bool {
        resolution.end(lookups.removeFirst(), outcome, now: now, random: random)
    }

    mutating func answer(_ outcome: NameResolver.Outcome) {
        ask()
        end(outcome)
    }

    mutating func answer(_ texts: String...) {
        answer(.success(texts.map { IPAddress($0)! }))
    }

    /// The time until the next lookup.
    var delay: Duration? { resolution.due.map { now.duration(to: $0) } }
    var addresses: [String] { resolution.addresses.map(\.description) }
}

@Suite struct NameResolutionTests {
    private let noAnswer = NameResolver.Outcome.failure(.init(code: -3))
    private let noSuchName = NameResolver.Outcome.failure(.init(code: -2))
    private var name = ScriptedResolution()

    @Test mutating func `one lookup runs at a time, and requests during it cause one more`() {
        #expect(name.ask() == true)
        #expect(name.ask(.pathChange) == false)
        #expect(name.end(.success([IPAddress("192.0.2.1")!])) == true)
        #expect(name.ask(.pathChange) == true)
        #expect(name.end(.success([IPAddress("192.0.2.2")!])) == false)
        #expect(name.addresses == ["192.0.2.2"])
    }

    @Test mutating func `the first status waits for a lookup unless addresses are known`() {
        let now = name.now
        name.resolution.begin(with: [IPAddress("fe80::1")!])
        let waits = !name.resolution.mayHaveStatus(now: now)
        #expect(waits && name.addresses == [])
        name.resolution.begin(with: [IPAddress("192.0.2.1")!])
        let mayHaveStatus = name.resolution.mayHaveStatus(now: now)
        #expect(mayHaveStatus && name.addresses == ["192.0.2.1"])
        name.answer(noAnswer)
        #expect(name.addresses == ["192.0.2.1"])
        name.answer("192.0.2.2")
        #expect(name.addresses == ["192.0.2.2"])
    }

    @Test mutating func `after a network change a new lookup replaces the one in progress`() {
        name.ask()
        #expect(name.ask(.networkChange) == true)
        #expect(name.end(.success([IPAddress("192.0.2.1")!])) == false)
        #expect(name.addresses == [])
        #expect(name.end(.success([IPAddress("192.0.2.2")!])) == false)
        #expect(name.addresses == ["192.0.2.2"])
    }

    @Test mutating func `addresses in an answer that are not valid hosts are ignored`() {
        name.answer("0.0.0.0", "fe80::1", "ff02::1", "::ffff:192.0.2.1")
        #expect(name.addresses == ["192.0.2.1"])
        // A name server that blocks the name answers 0.0.0.0.
        name.answer("0.0.0.0")
        #expect(name.addresses == ["192.0.2.1"])
        #expect(name.delay == .seconds(1))
    }

    @Test mutating func `reordered addresses change nothing unless the preferred family differs`() {
        name.answer("192.0.2.1", "192.0.2.2", "2001:db8::1")
        #expect(name.addresses == ["192.0.2.1", "192.0.2.2", "2001:db8::1"])
        name.answer("192.0.2.2", "192.0.2.1", "2001:db8::1")
        #expect(name.addresses == ["192.0.2.1", "192.0.2.2", "2001:db8::1"])
        name.answer("2001:db8::1", "192.0.2.2", "192.0.2.1")
        #expect(name.addresses == ["2001:db8::1", "192.0.2.2", "192.0.2.1"])
    }

    @Test mutating func `unanswered lookups never remove the addresses`() {
        name.answer("192.0.2.1")
        for _ in 0..<9 { name.answer(noAnswer) }
        #expect(name.addresses == ["192.0.2.1"])
    }

    @Test mutating func `two consecutive answers without addresses remove the addresses`() {
        name.answer("192.0.2.1")
        name.answer(noSuchName)
        name.answer(noAnswer)
        name.answer(noSuchName)
        #expect(name.addresses == ["192.0.2.1"])
        name.answer(noSuchName)
        #expect(name.addresses == [])
    }

    @Test mutating func `addresses that are not valid hosts count as no address`() {
        name.answer("192.0.2.1")
        name.answer("fe80::1")
        name.answer("0.0.0.0")
        #expect(name.addresses == [])
    }

    @Test mutating func `addresses are refreshed every 30 s with 10 % jitter`() {
        name.answer("192.0.2.1")
        #expect(name.delay == .seconds(30))
        for (random, seconds) in [(0.0, 27), (1.0, 33)] {
            name.ask()
            name.end(.success([IPAddress("192.0.2.1")!]), random: random)
            #expect(name.delay == .seconds(seconds))
        }
    }

    @Test mutating func `failed lookups are retried with backoff up to the refresh interval`() {
        let delays = (0..<7).map { _ in
            name.answer(noAnswer)
            return name.delay
        }
        #expect(delays == [1, 2, 4, 8, 16, 30, 30].map { .seconds($0) })
    }

    @Test func `the delay after failed lookups is limited only by the refresh interval`() {
        var name = ScriptedResolution(interval: .seconds(3600))
        let delays = (0..<13).map { _ in
            name.answer(noAnswer)
            return name.delay
        }
        #expect(delays.suffix(3) == [.seconds(1024), .seconds(2048), .seconds(3600)])
    }

    @Test mutating func `unreachable addresses are refreshed sooner`() {
        name.answer("192.0.2.1")
        name.resolution.note(isReachable: false, now: name.now)
        #expect(name.delay == .seconds(5))
        let delays = (0..<4).map { _ in
            name.answer("192.0.2.1")
            name.resolution.note(isReachable: false, now: name.now)
            return name.delay
        }
        #expect(delays == [5, 10, 20, 30].map { .seconds($0) })
        name.resolution.note(isReachable: true, now: name.now)
        name.answer("192.0.2.1")
        #expect(name.delay == .seconds(30))
    }

    @Test mutating func `a path change resets the backoff`() {
        for _ in 0..<9 { name.answer(noAnswer) }
        name.ask(.pathChange)
        name.end(noAnswer)
        #expect(name.delay == .seconds(1))
    }

    @Test mutating func `after a network change, a running lookup is replaced when the budget allows`() {
        name.ask()
        name.wait(behind: 20)
        #expect(name.ask(.networkChange) == false)
        name.now = name.now + .milliseconds(50)
        #expect(name.ask() == true)
        #expect(name.delay == nil)
    }

    @Test mutating func `answers without addresses from two networks are not counted together`() {
        name.answer("192.0.2.1")
        name.answer(noSuchName)
        name.ask(.networkChange)
        name.now = name.now + .seconds(60)
        if name.lookups.isEmpty { name.ask() }
        name.end(noSuchName)
        #expect(name.addresses == ["192.0.2.1"])
    }

    @Test mutating func `a lookup delayed by the budget starts once when it is due`() {
        name.answer("192.0.2.1")
        name.wait(behind: 30)
        #expect(name.ask(.pathChange) == false)
        #expect(name.ask(.networkChange) == false)
        #expect(name.delay == nil)
        name.now = name.now + .milliseconds(549)
        #expect(name.ask() == false)
        name.now = name.now + .milliseconds(1)
        #expect(name.ask() == true)
    }

    @Test func `the first status waits at most two seconds for the first lookup`() {
        var waiting = ScriptedResolution()
        #expect(waiting.resolution.mayHaveStatus(now: waiting.start + .milliseconds(1999)) == false)
        #expect(waiting.resolution.mayHaveStatus(now: waiting.start + .seconds(2)) == true)
        var crowded = ScriptedResolution()
        crowded.resolution.noteFirstLookup(startsAt: crowded.start + .milliseconds(1999))
        let waits = !crowded.resolution.mayHaveStatus(now: crowded.start)
        crowded.resolution.noteFirstLookup(startsAt: crowded.start + .seconds(2))
        let waitsNoLonger = crowded.resolution.mayHaveStatus(now: crowded.start)
        #expect(waits && waitsNoLonger)
        var answered = ScriptedResolution()
        answered.answer(noAnswer)
        #expect(answered.resolution.mayHaveStatus(now: answered.start) == true)
    }
}
