internal import NetwatchEventLoop
internal import Testing

@testable internal import NetworkReachability

@Suite struct LookupTurnsTests {
    private let start = BootInstant.now

    /// Returns the names whose lookups may start after the given time.
    private func take(_ turns: inout LookupTurns, after delay: Duration = .zero) -> [String] {
        var names: [String] = []
        while let name = turns.takeNext(now: start + delay) { names.append(name) }
        return names
    }

    @Test func `the refreshes of one second may start at once, and the others are spread evenly`() {
        var turns = LookupTurns(perSecond: 20)
        for number in 0..<10_000 { turns.add("\(number)", .refresh) }
        let counts = [0, 49, 50, 100, 1000].map { take(&turns, after: .milliseconds($0)).count }
        #expect(counts == [20, 0, 1, 1, 18])
        #expect(turns.opening(now: start + .seconds(1)) == start + .milliseconds(1050))
    }

    @Test func `new names and refreshes take turns, and a hundred new names do not wait`() {
        var turns = LookupTurns(perSecond: 20)
        for number in 0..<3000 { turns.add("new\(number)", .first) }
        #expect(take(&turns).count == LookupTurns.firstBurst + LookupTurns.burst)
        #expect(turns.lastFirstStart(now: start) == start + .milliseconds(2880 * 50))
        for number in 0..<3000 { turns.add("known\(number)", .refresh) }
        let next = (1...4).flatMap { take(&turns, after: .milliseconds(50 * $0)) }
        #expect(next == ["known0", "new120", "known1", "new121"])
        #expect(take(&turns, after: .seconds(2)).contains("new122"))
    }

    @Test func `a name that is removed takes neither a turn nor memory`() {
        var line = LookupLine()
        var appended = 0
        for number in 0..<10_000 {
            if line.append("\(number)") { appended += 1 }
            line.remove("\(number)")
        }
        #expect(appended == 10_000 && line.isEmpty && line.entryCount <= 65)
        let isNew = [line.append("a"), line.append("a"), line.append("b")]
        line.remove("a")
        let taken = [line.popFirst(), line.popFirst()]
        #expect(isNew == [true, false, true] && taken == ["b", nil])
    }
}
