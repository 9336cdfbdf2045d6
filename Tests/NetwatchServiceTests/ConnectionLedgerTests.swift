internal import Testing

@testable internal import NetwatchService

@Suite struct ConnectionLedgerTests {
    private let start = ContinuousClock.now

    private func limits(_ adjust: (inout ControlServer.Limits) -> Void) -> ControlServer.Limits {
        var limits = ControlServer.Limits()
        adjust(&limits)
        return limits
    }

    /// A ledger with `count` active connections, and their ids.
    private func ledger(_ count: Int, _ limits: ControlServer.Limits) -> (ConnectionLedger, [UInt64]) {
        var ledger = ConnectionLedger(limits: limits)
        let ids = (0..<count).map { _ in ledger.add() }
        for id in ids { ledger.activate(id, now: start) }
        return (ledger, ids)
    }

    @Test func `each class has its own limit, and a slot that becomes free is given away`() {
        var (ledger, ids) = ledger(4, limits { ($0.calls, $0.waits) = (1, 1) })
        #expect(ledger.enter(.wait, ids[0]) == .admitted)
        #expect(ledger.enter(.wait, ids[1]) == .full)
        #expect(ledger.enter(.call, ids[1]) == .admitted)
        #expect(ledger.enter(.call, ids[2]) == .full)
        #expect(ledger.enter(.upload, ids[3]) == .admitted)
        // The slot is already free while the response is being sent.
        #expect(ledger.move(ids[1], to: .listing(5), now: start) == [])
        #expect(ledger.enter(.call, ids[2]) == .admitted)
        ledger.close(ids[0])
        #expect(ledger.enter(.wait, ids[1]) == .admitted)
    }

    @Test func `a connection that was closed gets no slot`() {
        var (ledger, ids) = ledger(1, .init())
        ledger.close(ids[0])
        #expect(ledger.enter(.call, ids[0]) == .gone)
        #expect(ledger.move(ids[0], to: .idle, now: start) == [])
        ledger.close(ids[0])
    }

    @Test func `the oldest idle connection makes room for one more`() {
        var (ledger, ids) = ledger(3, limits { $0.idleConnections = 2 })
        for id in ids { #expect(ledger.enter(.call, id) == .admitted) }
        #expect(ledger.move(ids[1], to: .idle, now: start) == [])
        #expect(ledger.move(ids[0], to: .idle, now: start) == [])
        #expect(ledger.move(ids[2], to: .idle, now: start) == [ids[1]])
    }

    @Test func `unread responses make room by their number and by their bytes, the newest never`() {
        var (ledger, ids) = ledger(5, limits { ($0.respondingBytes, $0.respondingConnections) = (100, 3) })
        #expect(ledger.move(ids[0], to: .listing(60), now: start) == [])
        #expect(ledger.move(ids[1], to: .listing(30), now: start) == [])
        #expect(ledger.move(ids[2], to: .listing(30), now: start) == [ids[0]])
        #expect(ledger.move(ids[3], to: .listing(500), now: start) == [ids[1], ids[2]])
        #expect(ledger.move(ids[4], to: .listing(1), now: start) == [ids[3]])
        var (many, others) = self.ledger(4, limits { $0.respondingConnections = 3 })
        for id in others.prefix(3) { #expect(many.move(id, to: .listing(1), now: start) == []) }
        #expect(many.move(others[3], to: .listing(1), now: start) == [others[0]])
    }

    @Test func `a listing makes room before the answer of an edit, which cannot be asked for again`() {
        var (ledger, ids) = ledger(4, limits { $0.respondingConnections = 2 })
        let edit = ConnectionLedger.Place.responding(bytes: 1, isRepeatable: false)
        #expect(ledger.move(ids[0], to: edit, now: start) == [])
        #expect(ledger.move(ids[1], to: .listing(1), now: start) == [])
        #expect(ledger.move(ids[2], to: edit, now: start) == [ids[1]])
        #expect(ledger.move(ids[3], to: edit, now: start) == [ids[0]], "there is no listing left")
    }

    @Test func `a closed connection keeps its slot until its handler has ended`() {
        var (ledger, ids) = ledger(3, limits { $0.waits = 1 })
        #expect(ledger.enter(.wait, ids[0]) == .admitted)
        ledger.beginHandling(ids[0])
        ledger.close(ids[0])
        #expect(ledger.enter(.wait, ids[1]) == .full)
        #expect(ledger.enter(.call, ids[0]) == .gone)
        #expect(ledger.move(ids[0], to: .idle, now: start) == [])
        #expect(ledger.enter(.wait, ids[1]) == .full, "a late response does not free it")
        ledger.endHandling(ids[0])
        #expect(ledger.enter(.wait, ids[1]) == .admitted)
        ledger.beginHandling(ids[1])
        ledger.endHandling(ids[1])
        #expect(ledger.enter(.wait, ids[2]) == .full, "an open connection keeps it until it responds")
    }

    @Test func `the bodies of the requests of a class are bounded in bytes, but for the first`() {
        var (ledger, ids) = ledger(4, limits { $0.servedBytes = 100 })
        #expect(ledger.enter(.upload, ids[0]) == .admitted)
        #expect(ledger.enter(.send, ids[0], bytes: 101) == .admitted)
        #expect(ledger.enter(.send, ids[1], bytes: 1) == .full)
        #expect(ledger.enter(.wait, ids[1], bytes: 60) == .admitted)
        #expect(ledger.enter(.wait, ids[2], bytes: 41) == .full)
        #expect(ledger.enter(.wait, ids[2], bytes: 40) == .admitted)
        ledger.close(ids[0])
        #expect(ledger.enter(.send, ids[3], bytes: 1) == .admitted)
    }

    @Test func `a refusal names the limit of bytes, which uploads do not have`() {
        let limits = ControlServer.Limits()
        #expect(Problem.busy(.call, limits).detail.contains("at once, with 16777216 bytes of bodies; try"))
        #expect(Problem.busy(.upload, limits).detail.contains("at once; try"))
    }

    @Test func `an upload that enters another class gives up its slot`() {
        var (ledger, ids) = ledger(2, limits { $0.uploads = 1 })
        #expect(ledger.enter(.upload, ids[0]) == .admitted)
        #expect(ledger.enter(.upload, ids[1]) == .full)
        #expect(ledger.enter(.send, ids[0], bytes: 40_000) == .admitted)
        #expect(ledger.enter(.upload, ids[1]) == .admitted)
    }

    @Test func `a connection without a request keeps its place for the grace and then makes room`() {
        let limits = limits { ($0.arrivingConnections, $0.arrivalGrace) = (2, .seconds(1)) }
        var (ledger, ids) = ledger(2, limits)
        #expect(ledger.makeRoom(now: start + .milliseconds(400)) == .after(.milliseconds(600)))
        ledger.activate(ids[1], now: start + .milliseconds(400))
        #expect(ledger.makeRoom(now: start + .seconds(1)) == .closing([ids[0]]))
        // A connection keeps its place until it is closed. If it is not closed, it gets another grace period.
        #expect(ledger.makeRoom(now: start + .seconds(1)) == .after(.milliseconds(400)))
        #expect(ledger.makeRoom(now: start + .milliseconds(1400)) == .closing([ids[1]]))
        ledger.close(ids[1])
        #expect(ledger.makeRoom(now: start + .seconds(2)) == .free)
    }

    @Test func `a connection whose channel is not there yet is not closed`() {
        let limits = limits { ($0.arrivingConnections, $0.arrivalGrace) = (1, .seconds(1)) }
        var ledger = ConnectionLedger(limits: limits)
        let id = ledger.add()
        #expect(ledger.makeRoom(now: start + .seconds(9)) == .after(.seconds(1)))
        ledger.activate(id, now: start + .seconds(9))
        #expect(ledger.makeRoom(now: start + .seconds(10)) == .closing([id]))
        #expect(ledger.isArriving(id))
    }

    @Test func `many make room at once, the oldest first`() {
        let limits = limits { ($0.arrivingConnections, $0.arrivalGrace) = (32, .seconds(1)) }
        var (ledger, ids) = ledger(32, limits)
        for (index, id) in ids.enumerated() { ledger.activate(id, now: start - .milliseconds(index)) }
        #expect(ledger.makeRoom(now: start + .seconds(1)) == .closing(Array(ids.suffix(4).reversed())))
    }

    @Test func `a served connection needs no room among those without a request`() {
        let limits = limits { ($0.arrivingConnections, $0.arrivalGrace) = (1, .seconds(1)) }
        var (ledger, ids) = ledger(1, limits)
        #expect(ledger.makeRoom(now: start) == .after(.seconds(1)))
        #expect(ledger.enter(.wait, ids[0]) == .admitted)
        #expect(ledger.makeRoom(now: start) == .free)
    }

    @Test func `few descriptors lower all numbers in proportion`() {
        var limits = ControlServer.Limits()
        #expect(limits.waits >= 1000 && limits.connections * 2 > 4000)
        limits.fit(descriptors: 100_000)
        #expect(limits == ControlServer.Limits())
        limits.fit(descriptors: 256)
        #expect(limits.connections <= 128 + 8 && limits.calls >= 1 && limits.uploads >= 1)
        #expect(limits.waits > limits.sends)
    }
}

extension ConnectionLedger.Place {
    fileprivate static func listing(_ bytes: Int) -> ConnectionLedger.Place {
        .responding(bytes: bytes, isRepeatable: true)
    }
}
