internal import Testing

/// The violations that `CrashLedger` detects. Requests with an odd number belong to a FIFO lane.
@Suite struct CrashLedgerTests {
    private typealias Row = CrashLedger.Row

    private var ledger = CrashLedger()

    private mutating func accept(_ ids: String...) {
        for id in ids { ledger.accepted(id, key: "k") }
    }

    private mutating func arrive(_ id: String, _ isSuccess: Bool = true, key: String? = "k") {
        ledger.arrived(id, key: key, isWhole: true, isAnsweredWithSuccess: isSuccess)
    }

    private mutating func kill(run: Int = 0, _ states: [String: String], integrity: [String] = ["ok"]) {
        ledger.killed(
            run: run,
            rows: states.mapValues { Row(state: $0, key: "k") },
            integrity: integrity
        )
    }

    @Test mutating func `a ledger without violations reports none`() {
        accept("p1-1", "p1-3")
        arrive("p1-1", false)
        arrive("p1-1")
        kill(["p1-1": "delivered", "p1-3": "pending"])
        arrive("p1-3")
        ledger.drained(rows: [
            "p1-1": Row(state: "delivered", key: "k"), "p1-3": Row(state: "delivered", key: "k"),
        ])
        #expect(ledger.violations == [])
        #expect(ledger.figures.killsAfterAcceptance == 1 && ledger.figures.lossyKills == 0)
    }

    @Test mutating func `the ledger reports a missing accepted request as lost, once`() {
        accept("p1-1")
        kill([:])
        kill(run: 1, [:])
        #expect(ledger.violations == [.lost(id: "p1-1", run: 0)])
        #expect(ledger.figures.killsAfterAcceptance == 1 && ledger.figures.lossyKills == 1)
    }

    @Test mutating func `the ledger reports a missing request that was sent as lost`() {
        arrive("p1-1", false)
        kill([:])
        #expect(ledger.violations == [.lost(id: "p1-1", run: 0)])
    }

    @Test(arguments: ["delivered", "dead", "cancelled", "superseded", "held"])
    mutating func `a final or held state without a successful response is reported`(state: String) {
        accept("p1-2")
        arrive("p1-2", false)
        kill(["p1-2": state])
        #expect(ledger.violations == [.untruthful(id: "p1-2", state: state, run: 0)])
    }

    @Test mutating func `requests of FIFO lanes may be held after a kill, but not at the end`() {
        accept("p1-1")
        kill(["p1-1": "held"])
        #expect(ledger.violations == [])
        ledger.drained(rows: ["p1-1": Row(state: "held", key: nil)])
        #expect(ledger.violations == [.stuck(id: "p1-1", state: "held")])
    }

    @Test mutating func `a delivered request that is pending after a later kill is reported`() {
        accept("p1-1")
        arrive("p1-1")
        kill(["p1-1": "delivered"])
        kill(run: 1, ["p1-1": "pending"])
        #expect(ledger.violations == [.reopened(id: "p1-1", run: 1)])
    }

    @Test mutating func `a FIFO request that arrives before its predecessor is delivered is reported`() {
        accept("p1-1", "p1-3", "p2-5")
        arrive("p2-5")
        arrive("p1-1", false)
        arrive("p1-3", false)
        arrive("p1-1")
        arrive("p1-3")
        #expect(ledger.violations == [.overtook(id: "p1-3", earlier: "p1-1")])
    }

    @Test mutating func `a parallel lane may send a later request first`() {
        accept("p1-2", "p1-4")
        arrive("p1-4")
        arrive("p1-2")
        #expect(ledger.violations == [])
    }

    @Test mutating func `each kill during an attempt permits one more success`() {
        accept("p1-1")
        arrive("p1-1")
        kill(["p1-1": "inflight"])
        arrive("p1-1")
        #expect(ledger.violations == [] && ledger.figures.duplicates == 1)
        arrive("p1-1")
        #expect(ledger.violations == [.duplicated(id: "p1-1", times: 3, kills: 1)])
    }

    @Test
    mutating func `an at-most-once request may be held after it was sent, and is never delivered twice`() {
        accept("p1-12", "p1-20")
        arrive("p1-12")
        kill(["p1-12": "inflight", "p1-20": "held"])
        #expect(ledger.violations == [.untruthful(id: "p1-20", state: "held", run: 0)])
        kill(run: 1, ["p1-12": "held", "p1-20": "inflight"])
        kill(run: 2, ["p1-12": "held", "p1-20": "held"])
        ledger.drained(rows: ["p1-12": Row(state: "held", key: "k"), "p1-20": Row(state: "held", key: "k")])
        #expect(ledger.violations.count == 1 && ledger.figures.heldAtMostOnce == 2)
        arrive("p1-12")
        #expect(ledger.violations.contains(.duplicated(id: "p1-12", times: 2, kills: 0)))
    }

    @Test mutating func `a changed idempotency key is detected at the server and in the store`() {
        accept("p1-2", "p1-8", "p1-6")
        arrive("p1-2", key: "other")
        arrive("p1-8", false, key: nil)
        arrive("p1-8")
        ledger.killed(run: 0, rows: ["p1-6": Row(state: "pending", key: "other")], integrity: ["ok"])
        let changed = ledger.violations.filter { if case .keyChanged = $0 { true } else { false } }
        #expect(Set(changed) == [.keyChanged(id: "p1-2"), .keyChanged(id: "p1-8"), .keyChanged(id: "p1-6")])
    }

    @Test mutating func `a damaged request, a corrupt database and an early end of a process are detected`() {
        ledger.arrived("p1-2", key: "k", isWhole: false, isAnsweredWithSuccess: false)
        kill(["p1-2": "pending"], integrity: ["row 1 missing from index request_due"])
        ledger.ended(run: 0, words: "failed")
        #expect(
            ledger.violations == [
                .damaged(id: "p1-2"), .corrupt(run: 0, finding: "row 1 missing from index request_due"),
                .ended(run: 0, words: "failed"),
            ]
        )
    }

    @Test mutating func `a missing body file is reported only while a request needs it`() {
        accept("p1-2", "p1-4")
        arrive("p1-4")
        let rows = [
            "p1-2": Row(state: "pending", key: "k", bodyFile: "a"),
            "p1-4": Row(state: "delivered", key: "k", bodyFile: "b"),
        ]
        ledger.killed(run: 0, rows: rows, integrity: ["ok"], spool: [])
        #expect(ledger.violations == [.bodyMissing(id: "p1-2", run: 0)])
        ledger.killed(run: 1, rows: rows, integrity: ["ok"], spool: ["a"])
        #expect(ledger.violations.count == 1)
    }

    @Test mutating func `the ledger reports requests that are not delivered in the end`() {
        accept("p1-2", "p1-4")
        arrive("p1-4")
        let rows = ["p1-2": Row(state: "pending", key: "k"), "p1-4": Row(state: "inflight", key: "k")]
        ledger.drained(rows: rows)
        #expect(
            Set(ledger.violations) == [
                .stuck(id: "p1-2", state: "pending"), .stuck(id: "p1-4", state: "inflight"),
            ]
        )
    }
}
