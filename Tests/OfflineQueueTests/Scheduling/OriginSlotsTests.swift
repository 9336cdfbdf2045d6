internal import Testing

@testable internal import OfflineQueue

@Suite struct OriginSlotsTests {
    private let slow = Self.origin("slow")
    private let other = Self.origin("other")

    private static func origin(_ host: String) -> Origin { Origin(scheme: "https", host: host, port: 443) }

    /// Returns four slots, of which one is reserved, with at most two per origin. All given lanes wait for a slot.
    private func slots(_ lanes: [(Int64, Origin)]) -> OriginSlots {
        var slots = OriginSlots(limits: .init(total: 4, perOrigin: 2, reserved: 1))
        for (id, origin) in lanes {
            slots.open(laneOf: origin)
            slots.join(id, of: origin)
        }
        return slots
    }

    /// Takes all available slots. Each lane waits again after it has got a slot.
    private func takeAll(_ slots: inout OriginSlots, _ origins: [Int64: Origin]) -> [Int64] {
        var taken: [Int64] = []
        while let lane = slots.take() {
            taken.append(lane)
            slots.join(lane, of: origins[lane]!)
        }
        return taken
    }

    @Test func `an origin has no more slots than its limit, however many lanes it has`() {
        var slots = slots([(1, slow), (2, slow), (3, slow)])
        #expect(takeAll(&slots, [1: slow, 2: slow, 3: slow]) == [1, 2])
        slots.release(1, of: slow)
        #expect(slots.take() == 3, "the lanes of an origin take turns")
    }

    @Test func `a reserved slot is only for an origin without slots`() {
        let third = Self.origin("third")
        var slots = slots([(1, slow), (2, other), (3, third)])
        for origin in [slow, other, third] { slots.setStanding(.prompt, of: origin) }
        let taken = takeAll(&slots, [1: slow, 2: other, 3: third])
        #expect(Set(taken) == [1, 2, 3])
        #expect(
            taken.count == 4,
            "three common slots and the reserved one"
        )
    }

    @Test func `a slow origin gets no reserved slot`() {
        let third = Self.origin("third")
        var slots = slots([(1, slow), (2, other)])
        slots.setStanding(.slow, of: slow)
        slots.leave(1, of: slow)
        #expect(takeAll(&slots, [2: other]).count == 2)
        slots.open(laneOf: third)
        slots.join(3, of: third)
        #expect(takeAll(&slots, [3: third]).count == 1, "the last common slot")
        slots.join(1, of: slow)
        #expect(slots.take() == nil)
        slots.setStanding(.prompt, of: slow)
        #expect(slots.take() == 1)
    }

    @Test func `an endless series of new origins does not starve an origin with slots`() {
        var slots = slots([(1, slow)])
        var origins: [Int64: Origin] = [1: slow]
        #expect(slots.take() == 1)
        for id in 2..<12 as Range<Int64> {
            origins[id] = Self.origin("new\(id)")
            slots.open(laneOf: origins[id]!)
            slots.join(id, of: origins[id]!)
        }
        var taken: [Int64] = []
        while let lane = slots.take() { taken.append(lane) }
        slots.join(1, of: slow)
        var next: [Int64] = []
        for lane in taken {
            slots.release(1, of: origins[lane]!)
            if let lane = slots.take() { next.append(lane) }
        }
        #expect(next.contains(1))
    }

    @Test func `a lane that leaves and joins again moves to the end of the queue`() {
        var slots = slots([(1, slow), (2, slow)])
        slots.leave(1, of: slow)
        #expect(!slots.isWaiting(1, of: slow))
        slots.join(1, of: slow)
        #expect([slots.take(), slots.take()] == [2, 1])
    }
}
