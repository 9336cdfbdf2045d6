internal import Testing

@testable internal import OfflineQueue

/// The number of watches, and the lanes that wait for one.
@Suite struct WatchTurnsTests {
    private func group(_ submitter: UInt32?, _ purpose: WatchTurns.Group.Purpose = .attempt)
        -> WatchTurns.Group
    {
        WatchTurns.Group(submitter: submitter, purpose: purpose)
    }

    /// Returns the lanes that may have a watch now, in order, each with the host whose watch ends before. The watches are
    /// counted for no user.
    private func take(_ watches: inout WatchTurns, now: Moment) -> [String] {
        var taken: [String] = []
        while let (lane, yielding) = watches.takeNext(now: now) {
            if let yielding { watches.use.ended(yielding, for: nil) }
            watches.use.began(for: nil)
            taken.append("\(lane)" + (yielding.map { " \($0.host)" } ?? ""))
        }
        return taken
    }

    @Test func `the groups take turns, and the watch that was not used for longest yields`() {
        var watches = WatchTurns(limit: 3)
        for _ in 1...2 { watches.use.began(for: nil) }
        for lane in 1...3 as ClosedRange<Int64> { watches.add(lane, to: group(nil)) }
        watches.add(20, to: group(nil, .look))
        watches.add(30, to: group(nil, .demanded))
        watches.use.setYield(.https("b"), for: nil, from: .seconds(6))
        watches.use.setYield(.https("a"), for: nil, from: .seconds(5))
        #expect(take(&watches, now: .seconds(4)) == ["1"], "one watch is free")
        #expect(watches.nextYield == .seconds(5))
        #expect(take(&watches, now: .seconds(6)) == ["20 a", "30 b"])
        #expect(watches.nextYield == nil && !watches.isEmpty)
        watches.remove(2)
        watches.remove(3)
        #expect(watches.isEmpty)
    }

    @Test func `a user has a share of the watches, in which only their own watches yield`() {
        var watches = WatchTurns(limit: 8)
        for _ in 1...2 { watches.use.began(for: 1) }
        #expect(!watches.hasRoom(for: 1) && watches.hasRoom(for: 2) && watches.hasRoom(for: nil))
        watches.use.began(for: 2)
        watches.use.setYield(.https("other"), for: 2, from: .zero)
        watches.add(10, to: group(1))
        watches.add(20, to: group(2))
        let first = watches.takeNext(now: .seconds(1))
        #expect(first?.lane == 20 && first?.yielding == nil)
        #expect(watches.takeNext(now: .seconds(1))?.lane == nil)
        watches.use.setYield(.https("own"), for: 1, from: .seconds(2))
        #expect(watches.nextYield == .seconds(2))
        let second = watches.takeNext(now: .seconds(2))
        #expect(second?.lane == 10 && second?.yielding == .https("own"))
        for user in 2...5 as ClosedRange<UInt32> { watches.use.began(for: user) }
        #expect(!watches.hasRoom(for: 7) && watches.hasRoom(for: nil), "seven of eight are for users")
    }

    @Test func `a group that is not ready moves to the end with all its keys`() {
        var queue = GroupedQueue<String, Int>()
        for (key, group) in [(1, "a"), (2, "a"), (3, "b"), (4, "c")] { queue.add(key, to: group) }
        #expect(queue.removeFirst { $0 != "a" }?.key == 3)
        #expect(queue.removeFirst { $0 == "b" }?.key == nil)
        let rest = (1...3).map { _ in queue.removeFirst()?.key }
        #expect(rest == [4, 1, 2] && queue.isEmpty)
    }
}
