internal import NetwatchEventLoop
internal import Testing

@testable internal import NetworkReachability

@Suite struct RouteLifetimesTests {
    private var lifetimes = RouteLifetimes()
    private let start = BootInstant.now

    private func at(_ milliseconds: Int) -> BootInstant { start + .milliseconds(milliseconds) }

    /// Returns a verdict with the route of this number, which expires after `lifetime`; `nil` for a route that no
    /// advertisement changes.
    private func found(route: Int, lifetime: Duration?) -> AddressVerdict {
        var verdict = AddressVerdict(.notReachable(.noRoute))
        (verdict.route, verdict.lifetime, verdict.isRenewable) = (route, lifetime, lifetime != nil)
        return verdict
    }

    /// Records the same lookup of each address.
    private mutating func note(_ slots: Range<Int32>, _ found: AddressVerdict, isChanged: Bool, _ time: Int) {
        for slot in slots { _ = lifetimes.note(slot, found, isChanged: isChanged, now: at(time)) }
    }

    private mutating func due(_ time: Int) -> [Int32] { lifetimes.takeDue(at: at(time)).sorted() }

    @Test func `an address without a renewable route is looked up only for a time after a change`() {
        var test = self
        test.note(0..<1, test.found(route: 1, lifetime: nil), isChanged: true, 0)
        for second in 1..<65 { #expect(test.due(1000 * second) == [0]) }
        #expect(test.due(65_000) == [])
        #expect(test.lifetimes.due == nil)
        test.note(0..<1, test.found(route: 1, lifetime: nil), isChanged: false, 70_000)
        #expect(test.lifetimes.due == nil)
    }

    @Test func `an address is looked up when its route expires, and every second`() {
        var test = self
        test.note(0..<1, test.found(route: 1, lifetime: .milliseconds(2300)), isChanged: true, 0)
        for time in [1000, 2000] {
            #expect(test.due(time - 1) == [])
            #expect(test.due(time) == [0])
        }
        #expect(test.lifetimes.due == test.at(2350))
        #expect(test.due(2350) == [0])
    }

    @Test func `a renewable route without a lifetime is looked up every second forever`() {
        var test = self
        var unlimited = test.found(route: 1, lifetime: nil)
        unlimited.isRenewable = true
        for second in 0..<1000 { test.note(0..<1, unlimited, isChanged: false, 1000 * second) }
        #expect(test.due(1_000_000) == [0])
    }

    @Test func `after a silent loss, the lookups end only some time after a notification`() {
        var test = self
        test.note(0..<1, test.found(route: 1, lifetime: .seconds(1)), isChanged: true, 0)
        let lost = test.found(route: 0, lifetime: nil)
        test.note(0..<1, lost, isChanged: true, 1100)
        for second in 2..<1000 {
            #expect(test.due(1000 * second) == [0])
            test.note(0..<1, lost, isChanged: false, 1000 * second)
        }
        test.lifetimes.noteEvent(0)
        test.note(0..<1, lost, isChanged: false, 1_000_000)
        #expect(test.due(1_064_999) == [0])
        #expect(test.due(1_065_999) == [])
        #expect(test.lifetimes.due == nil)
    }

    @Test func `a lookup in the last 10 ms of a route, which shows no lifetime, does not hide its expiry`() {
        var test = self
        test.note(0..<1, test.found(route: 1, lifetime: .milliseconds(500)), isChanged: true, 0)
        test.note(0..<1, test.found(route: 1, lifetime: nil), isChanged: false, 495)
        #expect(test.lifetimes.due == test.at(550))
        #expect(test.due(550) == [0])
    }

    @Test func `of many addresses with the same route, a different part is looked up each time`() {
        var test = self
        test.note(0..<1000, test.found(route: 1, lifetime: .seconds(1800)), isChanged: true, 0)
        let parts = (1...20).map { test.due(1000 * $0) }
        #expect(parts.allSatisfy { $0.count == RouteLifetimes.sampleSize })
        #expect(Set(parts.joined()).count == 1000)
    }

    @Test(arguments: [true, false])
    func `if one of many addresses with the same route has changed, all others are looked up once`(
        isShortened: Bool
    ) {
        var test = self
        test.note(0..<1000, test.found(route: 1, lifetime: .seconds(1800)), isChanged: true, 0)
        test.note(1000..<2000, test.found(route: 2, lifetime: .seconds(1800)), isChanged: true, 0)
        let first = test.due(1000).first { $0 < 1000 }!
        let found =
            isShortened ? test.found(route: 1, lifetime: .seconds(3)) : test.found(route: 0, lifetime: nil)
        let others = test.lifetimes.note(first, found, isChanged: !isShortened, now: test.at(1000))
        #expect(Set(others).isSuperset(of: Set(0..<1000).subtracting([first])))
        #expect(others.allSatisfy { $0 < 1000 })
        let more = test.lifetimes.note(
            others.first { $0 != first }!,
            found,
            isChanged: !isShortened,
            now: test.at(1001)
        )
        #expect(more.isEmpty)
    }

    @Test func `an extended lifetime causes no lookups of other addresses`() {
        var test = self
        test.note(0..<1000, test.found(route: 1, lifetime: .seconds(30)), isChanged: true, 0)
        let first = test.due(1000)[0]
        let found = test.found(route: 1, lifetime: .seconds(1800))
        #expect(test.lifetimes.note(first, found, isChanged: false, now: test.at(1000)).isEmpty)
    }

    @Test func `each of many routes is looked up every second`() {
        var test = self
        for slot in 0..<Int32(1000) {
            let found = test.found(route: Int(slot) + 1, lifetime: .seconds(1800))
            _ = test.lifetimes.note(slot, found, isChanged: true, now: test.at(0))
        }
        #expect(test.due(1000).count == 1000)
    }

    @Test func `a removed address is not looked up`() {
        var test = self
        test.note(0..<2, test.found(route: 1, lifetime: .seconds(1800)), isChanged: true, 0)
        test.lifetimes.remove(0)
        #expect(test.due(1000) == [1])
        test.lifetimes.remove(1)
        #expect(test.due(2000) == [])
        #expect(test.lifetimes.due == nil)
    }
}
