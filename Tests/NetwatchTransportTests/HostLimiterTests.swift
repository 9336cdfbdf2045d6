internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchTransport

/// The decision which transfers may start and which must wait.
@Suite struct HostLimiterTests {
    private let key = HostLimiter.Key(pool: .common, origin: "http://a:80")
    private let ids = (0..<8).map { _ in TransferID() }

    /// Adds a transfer for each priority. Returns their host, and which of them may start immediately.
    private func add(
        _ priorities: [Float],
        to limiter: HostLimiter,
        limit: Int,
        probesFirst: Bool = false
    ) -> (host: HostLimiter.Host, started: [Bool]) {
        let added = zip(ids, priorities).map {
            limiter.add($0, to: key, limit: limit, priority: $1, probesFirst: probesFirst)
        }
        return (added[0].host, added.map { $0.mayBegin })
    }

    @Test func `as many transfers start as the limit allows`() {
        let limiter = HostLimiter()
        let (_, started) = add([0.5, 0.5, 0.5], to: limiter, limit: 2)
        #expect(started == [true, true, false])
    }

    @Test func `waiting transfers start in the order of their priority, then of their arrival`() {
        let limiter = HostLimiter()
        let (host, _) = add([0.5, 0.25, 0.5, 1, 0.5, 1, 0.25], to: limiter, limit: 1)
        var order: [TransferID] = []
        for _ in 0..<7 { order += limiter.transferEnded(host) }
        #expect(order == [3, 5, 2, 4, 1, 6].map { ids[$0] })
    }

    @Test func `a removed transfer is skipped`() {
        let limiter = HostLimiter()
        let (host, _) = add([0.5, 0.5, 0.5, 0.5], to: limiter, limit: 1)
        limiter.removeWaiting(ids[1], from: host)
        limiter.removeWaiting(ids[3], from: host)
        let (next, afterwards) = (limiter.transferEnded(host), limiter.transferEnded(host))
        #expect(next == [ids[2]])
        #expect(afterwards.isEmpty)
    }

    @Test func `the pools have separate limits`() {
        let limiter = HostLimiter()
        let other = HostLimiter.Key(pool: .make(), origin: key.origin)
        let started = [
            limiter.add(ids[0], to: key, limit: 1, priority: 0.5).mayBegin,
            limiter.add(ids[1], to: other, limit: 1, priority: 0.5).mayBegin,
        ]
        #expect(started == [true, true])
    }

    @Test func `a host that carries many transfers over one connection has a higher limit`() {
        let limiter = HostLimiter()
        let (host, _) = add([0.5, 0.5, 0.5], to: limiter, limit: 1)
        let afterConnecting = limiter.endProbing(host)
        #expect(afterConnecting.isEmpty)
        let started = limiter.setMultiplexed(host)
        let again = limiter.setMultiplexed(host)
        #expect(started == [ids[1], ids[2]])
        #expect(again.isEmpty)
    }

    @Test func `a host that no longer uses HTTP/2 has its limit again`() {
        let limiter = HostLimiter()
        let (host, _) = add([0.5, 0.5], to: limiter, limit: 1)
        #expect(limiter.setMultiplexed(host) == [ids[1]])
        limiter.endMultiplexing(to: key.origin)
        let (_, started) = limiter.add(ids[2], to: key, limit: 1, priority: 0.5)
        #expect(!started)
        #expect(limiter.transferEnded(host).isEmpty)
        #expect(limiter.transferEnded(host) == [ids[2]])
    }

    @Test(arguments: [true, false])
    func `a probing transfer runs alone until it is connected or has failed`(isConnected: Bool) {
        let limiter = HostLimiter()
        let (host, started) = add([0.5, 0.5, 0.5, 0.5], to: limiter, limit: 2, probesFirst: true)
        #expect(started == [true, false, false, false])
        let next = isConnected ? limiter.endProbing(host) : limiter.transferEnded(host)
        #expect(next == (isConnected ? [ids[1]] : [ids[1], ids[2]]))
    }

    @Test func `transfers that wait for a connection begin when another transfer is connected`() {
        let limiter = HostLimiter()
        let (host, started) = add([0.5, 0.5, 0.5], to: limiter, limit: 4)
        #expect(started == [true, true, true])
        limiter.waitForConnection(ids[1], of: host, priority: 0.5)
        limiter.waitForConnection(ids[2], of: host, priority: 1)
        let new = limiter.add(ids[3], to: key, limit: 4, priority: 0.5)
        #expect(!new.mayBegin)
        let next = limiter.endProbing(host)
        #expect(next == [ids[2], ids[1], ids[3]])
        for _ in 0..<4 { _ = limiter.transferEnded(host) }
        #expect(limiter.isEmpty)
    }

    @Test(arguments: (0..<50).map(UInt64.init))
    func `the limiter is empty after all transfers have ended`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let limiter = HostLimiter()
        // The host of the running and waiting transfers. It stays the same until the last of them has ended.
        var host: HostLimiter.Host?
        var running: [TransferID] = []
        var waiting: [TransferID] = []
        for _ in 0..<200 {
            var started: [TransferID] = []
            switch Int.random(in: 0..<6, using: &generator) {
            case 0 where !running.isEmpty:
                running.removeFirst()
                started = host.map(limiter.transferEnded) ?? []
            case 1 where !waiting.isEmpty:
                let index = Int.random(in: waiting.indices, using: &generator)
                let id = waiting.remove(at: index)
                host.map { limiter.removeWaiting(id, from: $0) }
            case 2 where !running.isEmpty: started = host.map(limiter.endProbing) ?? []
            case 3 where !running.isEmpty: started = host.map(limiter.setMultiplexed) ?? []
            default:
                let id = TransferID()
                let added = limiter.add(id, to: key, limit: 3, priority: 0.5, probesFirst: true)
                #expect(running.isEmpty || host === added.host, "NETWATCH_SEED=\(seed)")
                host = added.host
                if added.mayBegin { running.append(id) } else { waiting.append(id) }
            }
            running += started
            waiting.removeAll(where: started.contains)
        }
        if let host {
            for id in waiting { limiter.removeWaiting(id, from: host) }
            for _ in running { _ = limiter.transferEnded(host) }
        }
        #expect(limiter.isEmpty, "NETWATCH_SEED=\(seed)")
    }

    @Test func `removed transfers do not accumulate in the queue`() {
        let limiter = HostLimiter()
        let (host, _) = limiter.add(ids[0], to: key, limit: 1, priority: 0.5)
        _ = limiter.add(ids[1], to: key, limit: 1, priority: 0.1)
        for _ in 0..<10_000 {
            let id = TransferID()
            _ = limiter.add(id, to: key, limit: 1, priority: 0.5)
            limiter.removeWaiting(id, from: host)
        }
        #expect(limiter.queueLength(host) < 100)
        let next = limiter.transferEnded(host)
        #expect(next == [ids[1]])
    }
}
