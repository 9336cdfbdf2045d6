internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

@Suite struct ConnectionLimiterTests {
    private let start = ContinuousClock.now

    private func limits(_ adjust: (inout ControlServer.Limits) -> Void) -> ControlServer.Limits {
        var limits = ControlServer.Limits()
        adjust(&limits)
        return limits
    }

    /// Returns a limiter with `count` active connections, and their ids.
    private func limiter(_ count: Int, _ limits: ControlServer.Limits) -> (ConnectionLimiter, [UInt64]) {
        var limiter = ConnectionLimiter(limits: limits)
        let ids = (0..<count).map { _ in limiter.add(for: nil) }
        for id in ids { limiter.activate(id, now: start) }
        return (limiter, ids)
    }

    @Test func `each class has its own limit, and a free slot is given to the next request`() {
        var (limiter, ids) = limiter(4, limits { ($0.calls, $0.waits) = (1, 1) })
        #expect(limiter.requestSlot(.wait, ids[0]) == .admitted)
        #expect(limiter.requestSlot(.wait, ids[1]) == .full(.all))
        #expect(limiter.requestSlot(.call, ids[1]) == .admitted)
        #expect(limiter.requestSlot(.call, ids[2]) == .full(.all))
        #expect(limiter.requestSlot(.upload, ids[3]) == .admitted)
        // The slot is already free while the response is being sent.
        #expect(limiter.move(ids[1], to: .listing(5), now: start) == [])
        #expect(limiter.requestSlot(.call, ids[2]) == .admitted)
        limiter.close(ids[0])
        #expect(limiter.requestSlot(.wait, ids[1]) == .admitted)
    }

    @Test func `a closed connection gets no slot`() {
        var (limiter, ids) = limiter(1, .init())
        limiter.close(ids[0])
        #expect(limiter.requestSlot(.call, ids[0]) == .closed)
        #expect(limiter.move(ids[0], to: .idle, now: start) == [])
        limiter.close(ids[0])
    }

    @Test func `above the limit, the oldest idle connection is closed`() {
        var (limiter, ids) = limiter(3, limits { $0.idleConnections = 2 })
        for id in ids { #expect(limiter.requestSlot(.call, id) == .admitted) }
        #expect(limiter.move(ids[1], to: .idle, now: start) == [])
        #expect(limiter.move(ids[0], to: .idle, now: start) == [])
        #expect(limiter.move(ids[2], to: .idle, now: start) == [ids[1]])
    }

    @Test func `unread responses are limited by number and bytes, and the newest is never closed`() {
        var (limiter, ids) = limiter(5, limits { ($0.respondingBytes, $0.respondingConnections) = (100, 3) })
        #expect(limiter.move(ids[0], to: .listing(60), now: start) == [])
        #expect(limiter.move(ids[1], to: .listing(30), now: start) == [])
        #expect(limiter.move(ids[2], to: .listing(30), now: start) == [ids[0]])
        #expect(limiter.move(ids[3], to: .listing(500), now: start) == [ids[1], ids[2]])
        #expect(limiter.move(ids[4], to: .listing(1), now: start) == [ids[3]])
        var (many, others) = self.limiter(4, limits { $0.respondingConnections = 3 })
        for id in others.prefix(3) { #expect(many.move(id, to: .listing(1), now: start) == []) }
        #expect(many.move(others[3], to: .listing(1), now: start) == [others[0]])
    }

    @Test func `repeatable responses are closed before those of edits`() {
        var (limiter, ids) = limiter(4, limits { $0.respondingConnections = 2 })
        let edit = ConnectionLimiter.Stage.responding(bytes: 1, isRepeatable: false)
        #expect(limiter.move(ids[0], to: edit, now: start) == [])
        #expect(limiter.move(ids[1], to: .listing(1), now: start) == [])
        #expect(limiter.move(ids[2], to: edit, now: start) == [ids[1]])
        #expect(limiter.move(ids[3], to: edit, now: start) == [ids[0]], "no repeatable response is left")
    }

    @Test func `a closed connection keeps its slot until its handler returns`() {
        var (limiter, ids) = limiter(3, limits { $0.waits = 1 })
        #expect(limiter.requestSlot(.wait, ids[0]) == .admitted)
        limiter.beginHandling(ids[0])
        limiter.close(ids[0])
        #expect(limiter.requestSlot(.wait, ids[1]) == .full(.all))
        #expect(limiter.requestSlot(.call, ids[0]) == .closed)
        #expect(limiter.move(ids[0], to: .idle, now: start) == [])
        #expect(limiter.requestSlot(.wait, ids[1]) == .full(.all), "a late response does not free it")
        limiter.endHandling(ids[0])
        #expect(limiter.requestSlot(.wait, ids[1]) == .admitted)
        limiter.beginHandling(ids[1])
        limiter.endHandling(ids[1])
        #expect(
            limiter.requestSlot(.wait, ids[2]) == .full(.all),
            "an open connection keeps it until it responds"
        )
    }

    @Test func `the bodies of a class are limited in bytes, except for a single body`() {
        var (limiter, ids) = limiter(4, limits { $0.servedBytes = 100 })
        #expect(limiter.requestSlot(.upload, ids[0]) == .admitted)
        #expect(limiter.requestSlot(.send, ids[0], bytes: 101) == .admitted)
        #expect(limiter.requestSlot(.send, ids[1], bytes: 1) == .full(.all))
        #expect(limiter.requestSlot(.wait, ids[1], bytes: 60) == .admitted)
        #expect(limiter.requestSlot(.wait, ids[2], bytes: 41) == .full(.all))
        #expect(limiter.requestSlot(.wait, ids[2], bytes: 40) == .admitted)
        limiter.close(ids[0])
        #expect(limiter.requestSlot(.send, ids[3], bytes: 1) == .admitted)
    }

    /// A user, and a handler that still runs after its connection was closed, count for the share.
    @Test func `a user cannot exceed the share of a class by closing connections`() {
        var limiter = ConnectionLimiter(limits: limits { $0.waits = 8 })
        func request(of user: UInt32?) -> (id: UInt64, admission: ConnectionLimiter.Admission) {
            let id = limiter.add(for: user)
            return (id, limiter.requestSlot(.wait, id))
        }
        let first = request(of: 1)
        limiter.beginHandling(first.id)
        limiter.close(first.id)
        #expect([first.admission, request(of: 1).admission] == [.admitted, .admitted])
        #expect(request(of: 1).admission == .full(.user))
        #expect((0..<5).map { _ in request(of: 2).admission }.filter { $0 == .admitted }.count == 2)
        #expect([3, 3, 4].map { request(of: $0).admission } == [.admitted, .admitted, .admitted])
        #expect(request(of: 4).admission == .full(.users) && request(of: nil).admission == .admitted)
        #expect(request(of: nil).admission == .full(.all))
        limiter.endHandling(first.id)
        #expect(request(of: 2).admission == .full(.user) && request(of: 1).admission == .admitted)
    }

    @Test func `large bodies of a user leave room for small ones of the same user and for others`() {
        var limiter = ConnectionLimiter(limits: limits { $0.servedBytes = 1 << 20 })
        func request(of user: UInt32?, bytes: Int) -> ConnectionLimiter.Admission {
            limiter.requestSlot(.send, limiter.add(for: user), bytes: bytes)
        }
        #expect((0..<4).map { _ in request(of: 1, bytes: 1 << 16) }.allSatisfy { $0 == .admitted })
        #expect(request(of: 1, bytes: 1 << 16) == .full(.user))
        #expect(request(of: 1, bytes: 1 << 15) == .admitted && request(of: 2, bytes: 1 << 18) == .admitted)
        #expect(
            request(of: 3, bytes: 1 << 18) == .admitted && request(of: 4, bytes: 1 << 17) == .full(.users)
        )
        #expect(request(of: nil, bytes: 1 << 17) == .admitted)
    }

    /// Each stage in which connections are closed to make room. The response has half of the bytes that are allowed.
    private static let evicting: [ConnectionLimiter.Stage] = [
        .idle, .lingering, .responding(bytes: 1, isRepeatable: true),
        .responding(bytes: 50, isRepeatable: true),
    ]

    @Test(arguments: evicting)
    func `the connections of the user with most of them are closed first`(stage: ConnectionLimiter.Stage) {
        let limits = limits {
            ($0.idleConnections, $0.lingeringConnections, $0.respondingConnections) = (3, 3, 3)
            $0.respondingBytes = 175
        }
        var limiter = ConnectionLimiter(limits: limits)
        let users: [UInt32?] = [1, nil, 2, 2, 1, 2]
        let ids = users.map { limiter.add(for: $0) }
        for id in ids { limiter.activate(id, now: start) }
        let closed = ids.map { limiter.move($0, to: stage, now: start) }
        // The fourth is the second of user 2. Then user 1 has two, of which only the first one may be closed.
        #expect(closed == [[], [], [], [ids[2]], [ids[0]], [ids[3]]])
    }

    @Test func `silent connections of the user with most of them make room for others`() {
        let limits = limits { ($0.arrivingConnections, $0.arrivalGrace) = (8, .seconds(1)) }
        var limiter = ConnectionLimiter(limits: limits)
        let ids = ([1, nil] + Array(repeating: 2, count: 6)).map { (user: UInt32?) in limiter.add(for: user) }
        for (index, id) in ids.enumerated() { limiter.activate(id, now: start + .milliseconds(index)) }
        #expect(limiter.acceptDecision(now: start + .seconds(2)) == .evict([ids[2]]))
    }

    @Test func `a busy response says whose limit is reached`() {
        let limits = ControlServer.Limits()
        let problems = SharedLimit.Scope.allCases.map { Problem.busy(.upload, $0, limits) }
        #expect(
            problems.map(\.detail) == [
                "at most 6 requests of the class `upload` of one user are served at once; try again in 1 s",
                "at most 21 requests of the class `upload` of users without full access are served at once; try again "
                    + "in 1 s",
                "at most 24 requests of the class `upload` are served at once; try again in 1 s",
            ]
        )
        #expect(problems.map(\.limit?.connections) == [6, 21, 24])
    }

    @Test func `a busy response names the byte limit, which uploads do not have`() {
        let limits = ControlServer.Limits()
        #expect(
            Problem.busy(.call, .all, limits).detail.contains(
                "bodies of at most 16777216 bytes in total; try"
            )
        )
        #expect(Problem.busy(.upload, .all, limits).detail.contains("at once; try"))
    }

    @Test func `an upload that enters another class releases its slot`() {
        var (limiter, ids) = limiter(2, limits { $0.uploads = 1 })
        #expect(limiter.requestSlot(.upload, ids[0]) == .admitted)
        #expect(limiter.requestSlot(.upload, ids[1]) == .full(.all))
        #expect(limiter.requestSlot(.send, ids[0], bytes: 40_000) == .admitted)
        #expect(limiter.requestSlot(.upload, ids[1]) == .admitted)
    }

    @Test func `a connection without a request can be closed only after its grace period`() {
        let limits = limits { ($0.arrivingConnections, $0.arrivalGrace) = (2, .seconds(1)) }
        var (limiter, ids) = limiter(2, limits)
        #expect(limiter.acceptDecision(now: start + .milliseconds(400)) == .wait(.milliseconds(600)))
        limiter.activate(ids[1], now: start + .milliseconds(400))
        #expect(limiter.acceptDecision(now: start + .seconds(1)) == .evict([ids[0]]))
        // A connection stays in its stage until it is closed. If it is not closed, another grace period starts.
        #expect(limiter.acceptDecision(now: start + .seconds(1)) == .wait(.milliseconds(400)))
        #expect(limiter.acceptDecision(now: start + .milliseconds(1400)) == .evict([ids[1]]))
        limiter.close(ids[1])
        #expect(limiter.acceptDecision(now: start + .seconds(2)) == .accept)
    }

    @Test func `a connection whose channel is not active is not closed`() {
        let limits = limits { ($0.arrivingConnections, $0.arrivalGrace) = (1, .seconds(1)) }
        var limiter = ConnectionLimiter(limits: limits)
        let id = limiter.add(for: nil)
        #expect(limiter.acceptDecision(now: start + .seconds(9)) == .wait(.seconds(1)))
        limiter.activate(id, now: start + .seconds(9))
        #expect(limiter.acceptDecision(now: start + .seconds(10)) == .evict([id]))
        #expect(limiter.isArriving(id))
    }

    @Test func `several connections are closed at once, the oldest first`() {
        let limits = limits { ($0.arrivingConnections, $0.arrivalGrace) = (32, .seconds(1)) }
        var (limiter, ids) = limiter(32, limits)
        for (index, id) in ids.enumerated() { limiter.activate(id, now: start - .milliseconds(index)) }
        #expect(limiter.acceptDecision(now: start + .seconds(1)) == .evict(Array(ids.suffix(4).reversed())))
    }

    @Test func `a served connection does not count as arriving`() {
        let limits = limits { ($0.arrivingConnections, $0.arrivalGrace) = (1, .seconds(1)) }
        var (limiter, ids) = limiter(1, limits)
        #expect(limiter.acceptDecision(now: start) == .wait(.seconds(1)))
        #expect(limiter.requestSlot(.wait, ids[0]) == .admitted)
        #expect(limiter.acceptDecision(now: start) == .accept)
    }

    @Test func `a low descriptor limit lowers all limits in proportion`() {
        var limits = ControlServer.Limits()
        #expect(limits.waits >= 1000 && limits.connections * 2 > 4000)
        limits.fit(descriptors: 100_000)
        #expect(limits == ControlServer.Limits())
        limits.fit(descriptors: 256)
        #expect(limits.connections <= 128 + 8 && limits.calls >= 1 && limits.uploads >= 1)
        #expect(limits.waits > limits.sends)
    }
}

extension ConnectionLimiter.Stage {
    fileprivate static func listing(_ bytes: Int) -> ConnectionLimiter.Stage {
        .responding(bytes: bytes, isRepeatable: true)
    }
}
