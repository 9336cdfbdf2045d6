internal import Testing

@testable internal import NetwatchTransport

@Suite struct ReceiveLimiterTests {
    private let mebibyte = 1 << 20
    private var limiter = ReceiveLimiter()

    init() {}

    @Test mutating func `a turn receives one mebibyte, and the next turn as much again`() {
        for turn in 0..<2 {
            let first = Int64(turn * 10)
            #expect(limiter.decide(mebibyte + 1, received: first) == .accept)
            #expect(limiter.decide(1, received: first + 1) == .pause)
            limiter.turnDidEnd()
        }
        #expect(limiter.decide(1, received: 11) == .accept)
    }

    @Test mutating func `a caller can stop the rest of a turn, but not of a read`() {
        #expect(limiter.decide(1, received: 1) == .accept)
        limiter.isStoppedForTurn = true
        #expect(limiter.decide(1, received: 1) == .accept)
        #expect(limiter.decide(1, received: 2) == .pause)
        limiter.turnDidEnd()
        #expect(limiter.decide(1, received: 3) == .accept)
    }

    @Test mutating func `a read may expand up to its limit, and each read has its own`() {
        #expect(limiter.decide(ReceiveLimiter.readLimit, received: 1) == .accept)
        #expect(limiter.decide(1, received: 1) == .reject)
        limiter.turnDidEnd()
        #expect(limiter.decide(ReceiveLimiter.readLimit, received: 2) == .accept)
    }
}
