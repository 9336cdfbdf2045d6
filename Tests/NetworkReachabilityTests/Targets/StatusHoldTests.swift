internal import NetwatchEventLoop
internal import Testing

@testable internal import NetworkReachability

@Suite struct StatusHoldTests {
    private let start = BootInstant.now
    private let reachable = PathStatus.Verdict.reachable(path())
    private let unreachable = PathStatus.Verdict.notReachable(.noRoute)

    private static func path(gateway: String = "192.0.2.2") -> NetworkPath {
        NetworkPath(
            destination: IPAddress("198.51.100.7")!,
            interface: .fake(2),
            gateway: IPAddress(gateway),
            source: IPAddress("192.0.2.1"),
            isLocal: false,
            prefixLength: 0,
            table: 254
        )
    }

    private func hold(settle: Duration = .milliseconds(30)) -> StatusHold {
        StatusHold(target: .general, settle: settle)
    }

    private func at(_ milliseconds: Int) -> BootInstant { start + .milliseconds(milliseconds) }

    @Test func `the first status is published immediately`() {
        for verdict in [reachable, unreachable, .unknown(.noNetlink)] {
            var hold = hold()
            #expect(hold.update(TargetVerdict(verdict), now: at(0))?.verdict == verdict)
        }
    }

    @Test func `a change to reachable is published immediately`() {
        var hold = hold()
        _ = hold.update(TargetVerdict(unreachable), now: at(0))
        #expect(hold.update(TargetVerdict(reachable), now: at(0))?.verdict == reachable)
    }

    @Test func `a loss is published after the settle time`() {
        var hold = hold()
        _ = hold.update(TargetVerdict(reachable), now: at(0))
        #expect(hold.update(TargetVerdict(unreachable), now: at(10)) == nil)
        #expect(hold.heldUntil == at(40))
        #expect(hold.update(TargetVerdict(unreachable), now: at(39)) == nil)
        #expect(hold.update(TargetVerdict(unreachable), now: at(40))?.verdict == unreachable)
        #expect(hold.heldUntil == nil)
    }

    @Test func `without a settle time changes are published immediately`() {
        var hold = hold(settle: .zero)
        _ = hold.update(TargetVerdict(reachable), now: at(0))
        #expect(hold.update(TargetVerdict(unreachable), now: at(0))?.verdict == unreachable)
    }

    @Test func `a loss shorter than the settle time is not published but increases the generation`() {
        var hold = hold()
        let before = hold.update(TargetVerdict(reachable), now: at(0))
        #expect(hold.update(TargetVerdict(unreachable), now: at(10)) == nil)
        let after = hold.update(TargetVerdict(reachable), now: at(20))
        #expect(after?.verdict == before?.verdict)
        #expect(before?.pathGeneration == 1)
        #expect(after?.pathGeneration == 2)
        #expect(hold.heldUntil == nil)
        #expect(
            hold.update(TargetVerdict(unreachable), now: at(45)) == nil,
            "the settle time of the next loss begins again"
        )
    }

    @Test func `a reason shorter than the settle time is not published`() {
        var hold = hold()
        _ = hold.update(TargetVerdict(unreachable), now: at(0))
        #expect(hold.update(TargetVerdict(.notReachable(.noCarrier)), now: at(5)) == nil)
        #expect(hold.update(TargetVerdict(unreachable), now: at(10)) == nil)
        #expect(hold.heldUntil == nil)
    }

    @Test func `the same verdict is published once`() {
        var hold = hold()
        _ = hold.update(TargetVerdict(reachable), now: at(0))
        #expect(hold.update(TargetVerdict(reachable), now: at(100)) == nil)
    }

    @Test
    func `a path that is lost and found again keeps its route generation, except after a suspension`() {
        var hold = hold()
        let first = hold.update(TargetVerdict(reachable), now: at(0))
        _ = hold.update(TargetVerdict(unreachable), now: at(10))
        let lost = hold.update(TargetVerdict(unreachable), now: at(40))
        #expect(lost?.routeGeneration == first?.routeGeneration)
        #expect(hold.currentGeneration == 2, "the next path has another generation")
        let found = hold.update(TargetVerdict(reachable), now: at(50))
        #expect(found?.pathGeneration == 2 && found?.routeGeneration == first?.routeGeneration)
        #expect(hold.currentGeneration == 2)
        _ = hold.update(TargetVerdict(unreachable), now: at(60))
        #expect(hold.currentGeneration == 3, "a loss that is held back counts")
        hold.suspectPath()
        _ = hold.update(TargetVerdict(unreachable), now: at(90))
        #expect(hold.update(TargetVerdict(reachable), now: at(91))?.routeGeneration == 2)
        let moved = hold.update(TargetVerdict(.reachable(Self.path(gateway: "192.0.2.3"))), now: at(92))
        #expect(moved?.routeGeneration == 3)
    }

    @Test func `another gateway increases the generation`() {
        var hold = hold()
        let first = hold.update(TargetVerdict(reachable), now: at(0))
        let moved = hold.update(TargetVerdict(.reachable(Self.path(gateway: "192.0.2.3"))), now: at(1))
        #expect(first?.pathGeneration == 1)
        #expect(moved?.pathGeneration == 2)
    }
}
