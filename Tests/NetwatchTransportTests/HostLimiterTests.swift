internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchTransport

/// The decision which transfers may start and which must wait.
@Suite struct HostLimiterTests {
    private let key = HostLimiter.Key(pool: .common, origin: "http://a:80")
    private let ids = (0..<8).map { _ in TransferID() }

    /// Adds a transfer for each priority. Returns which of them may start immediately.
    private func add(_ priorities: [Float], to limiter: HostLimiter, limit: Int) -> [Bool] {
        zip(ids, priorities).map { limiter.add($0, to: key, limit: limit, priority: $1) }
    }

    @Test func `as many transfers start as the limit allows`() {
        let limiter = HostLimiter()
        let started = add([0.5, 0.5, 0.5], to: limiter, limit: 2)
        #expect(started == [true, true, false])
    }

    @Test func `waiting transfers start in the order of their priority, then of their arrival`() {
        let limiter = HostLimiter()
        _ = add([0.5, 0.25, 0.5, 1, 0.5, 1, 0.25], to: limiter, limit: 1)
        var order: [TransferID] = []
        for _ in 0..<7 { order += limiter.transferEnded(key) }
        #expect(order == [3, 5, 2, 4, 1, 6].map { ids[$0] })
    }

    @Test func `a removed transfer is skipped`() {
        let limiter = HostLimiter()
        _ = add([0.5, 0.5, 0.5, 0.5], to: limiter, limit: 1)
        limiter.removeWaiting(ids[1], from: key)
        limiter.removeWaiting(ids[3], from: key)
        let (next, afterwards) = (limiter.transferEnded(key), limiter.transferEnded(key))
        #expect(next == [ids[2]])
        #expect(afterwards.isEmpty)
    }

    @Test func `the pools have separate limits`() {
        let limiter = HostLimiter()
        let other = HostLimiter.Key(pool: .make(), origin: key.origin)
        let started = [
            limiter.add(ids[0], to: key, limit: 1, priority: 0.5),
            limiter.add(ids[1], to: other, limit: 1, priority: 0.5),
        ]
        #expect(started == [true, true])
    }

    @Test func `a host that carries many transfers over one connection has a higher limit`() {
        let limiter = HostLimiter()
        _ = add([0.5, 0.5, 0.5], to: limiter, limit: 1)
        let afterConnecting = limiter.endProbing(key)
        #expect(afterConnecting.isEmpty)
        let started = limiter.setMultiplexed(key)
        let again = limiter.setMultiplexed(key)
        #expect(started == [ids[1], ids[2]])
        #expect(again.isEmpty)
    }

    @Test(arguments: [true, false])
    func `a probing transfer runs alone until it is connected or has failed`(isConnected: Bool) {
        let limiter = HostLimiter()
        let started = ids.prefix(4).map {
            limiter.add($0, to: key, limit: 2, priority: 0.5, probesFirst: true)
        }
        #expect(started == [true, false, false, false])
        let next = isConnected ? limiter.endProbing(key) : limiter.transferEnded(key)
        #expect(next == (isConnected ? [ids[1]] : [ids[1], ids[2]]))
    }

    @Test func `transfers that wait for a connection begin when another transfer is connected`() {
        let limiter = HostLimiter()
        let started = add([0.5, 0.5, 0.5], to: limiter, limit: 4)
        #expect(started == [true, true, true])
        limiter.waitForConnection(ids[1], of: key, priority: 0.5)
        limiter.waitForConnection(ids[2], of: key, priority: 1)
        let new = limiter.add(ids[3], to: key, limit: 4, priority: 0.5)
        #expect(!new)
        let next = limiter.endProbing(key)
        #expect(next == [ids[2], ids[1], ids[3]])
        for _ in 0..<4 { _ = limiter.transferEnded(key) }
        #expect(limiter.isEmpty)
    }

    @Test(arguments: (0..<50).map(UInt64.init))
    func `the limiter is empty after all transfers have ended`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let limiter = HostLimiter()
        var running: [TransferID] = []
        var waiting: [TransferID] = []
        for _ in 0..<200 {
            var started: [TransferID] = []
            switch Int.random(in: 0..<6, using: &generator) {
            case 0 where !running.isEmpty:
                running.removeFirst()
                started = limiter.transferEnded(key)
            case 1 where !waiting.isEmpty:
                let index = Int.random(in: waiting.indices, using: &generator)
                limiter.removeWaiting(waiting.remove(at: index), from: key)
            case 2: started = limiter.endProbing(key)
            case 3: started = limiter.setMultiplexed(key)
            default:
                let id = TransferID()
                let starts = limiter.add(id, to: key, limit: 3, priority: 0.5, probesFirst: true)
                if starts { running.append(id) } else { waiting.append(id) }
            }
            running += started
            waiting.removeAll(where: started.contains)
        }
        for id in waiting { limiter.removeWaiting(id, from: key) }
        for _ in running { _ = limiter.transferEnded(key) }
        #expect(limiter.isEmpty, "NETWATCH_SEED=\(seed)")
    }

    @Test func `removed transfers do not accumulate in the queue`() {
        let limiter = HostLimiter()
        _ = limiter.add(ids[0], to: key, limit: 1, priority: 0.5)
        _ = limiter.add(ids[1], to: key, limit: 1, priority: 0.1)
        for _ in 0..<10_000 {
            let id = TransferID()
            _ = limiter.add(id, to: key, limit: 1, priority: 0.5)
            limiter.removeWaiting(id, from: key)
        }
        #expect(limiter.queueLength(key) < 100)
        let next = limiter.transferEnded(key)
        #expect(next == [ids[1]])
    }
}
