internal import Testing

@testable internal import OfflineQueue

@Suite struct SendWindowTests {
    @Test func `a window starts at the configured limit, and does not exceed it`() {
        var window = SendWindow(ceiling: 8)
        #expect(window.limit == 8)
        for _ in 0..<100 { window.succeeded(began: .seconds(1000)) }
        #expect(window.limit == 8)
    }

    @Test func `a new limit applies at once, but does not enlarge a reduced window`() {
        var window = SendWindow(ceiling: 8)
        window.use(ceiling: 4)
        #expect(window.limit == 4)
        window.use(ceiling: 10)
        #expect(window.limit == 10)
        window.overloaded(began: .zero, now: .seconds(1))
        window.use(ceiling: 20)
        #expect(window.limit == 7)
        for _ in 0..<1000 { window.succeeded(began: .seconds(2)) }
        #expect(window.limit == 20)
        window.overloaded(began: .seconds(2), now: .seconds(3))
        window.use(ceiling: 5)
        #expect(window.limit == 5)
    }

    @Test func `a sign of overload reduces the window to 70 %, once for the attempts that were in flight`() {
        var window = SendWindow(ceiling: 10)
        for second in 1...10 as ClosedRange<Int64> { window.overloaded(began: .zero, now: .seconds(second)) }
        #expect(window.limit == 7)
        window.overloaded(began: .seconds(2), now: .seconds(11))
        #expect(window.limit == 4, "4.9: a later attempt begins another series")
        for _ in 0..<10 { window.succeeded(began: .seconds(11)) }
        #expect(window.limit == 4, "successes of attempts that began earlier do not count either")
    }

    @Test func `a window keeps at least one request`() {
        var window = SendWindow(ceiling: 8)
        for second in 1...100 as ClosedRange<Int64> {
            window.overloaded(began: .seconds(second), now: .seconds(second))
        }
        #expect(window.limit == 1)
        window.succeeded(began: .seconds(1000))
        #expect(window.limit == 2)
    }

    @Test func `a window grows by one request for each full window of successes`() {
        var window = SendWindow(ceiling: 100)
        for second in 1...20 as ClosedRange<Int64> {
            window.overloaded(began: .seconds(second), now: .seconds(second))
        }
        var successes = 0
        for size in 1...20 {
            while window.limit == size {
                window.succeeded(began: .seconds(1000))
                successes += 1
            }
            #expect(successes <= size * (size + 1) / 2 + size)
        }
        #expect(successes >= 20 * 20 / 2, "linear growth, not exponential")
    }

    @Test func `an origin with a reduced window gets no more slots than that`() {
        let origin = Origin(scheme: "https", host: "a", port: 443)
        var slots = OriginSlots(limits: .init(total: 32, perOrigin: 8, reserved: 8))
        slots.open(laneOf: origin)
        slots.recordOverload(of: origin, began: .zero, now: .zero)
        var taken = 0
        slots.join(1, of: origin)
        while slots.take() != nil {
            taken += 1
            slots.join(1, of: origin)
        }
        #expect(taken == 5)
    }
}
