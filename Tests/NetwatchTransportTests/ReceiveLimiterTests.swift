internal import Testing

@testable internal import NetwatchTransport

@Suite struct ReceiveLimiterTests {
    private let mebibyte = 1 << 20
    private var limiter = ReceiveLimiter()

    init() {}

    private mutating func take(_ count: Int, received: Int64) -> Bool {
        limiter.mayReceive(received: received) && limiter.accepts(count)
    }

    @Test mutating func `a turn receives one mebibyte, and the next turn as much again`() {
        for turn in 0..<2 {
            let first = Int64(turn * 10)
            let isFirstTaken = take(mebibyte + 1, received: first)
            #expect(isFirstTaken && !limiter.isPaused)
            let isSecondTaken = take(1, received: first + 1)
            #expect(!isSecondTaken && limiter.isPaused)
            limiter.isPaused = false
            limiter.turnDidEnd()
        }
        let isTaken = take(1, received: 11)
        #expect(isTaken)
    }

    @Test mutating func `a caller can stop the rest of a turn, but not of a read`() {
        let isFirstTaken = take(1, received: 1)
        limiter.isStoppedForTurn = true
        let isRestTaken = take(1, received: 1)
        let isSecondTaken = take(1, received: 2)
        #expect(isFirstTaken && isRestTaken && !isSecondTaken)
        limiter.turnDidEnd()
        let isThirdTaken = take(1, received: 3)
        #expect(isThirdTaken)
    }

    @Test mutating func `a part may expand up to its limit, and each part has its own`() {
        let isTaken = take(ReceiveLimiter.partLimit, received: 1)
        let isMoreTaken = take(1, received: 1)
        #expect(isTaken && !isMoreTaken && !limiter.isPaused)
        limiter.beginPart()
        let isNextTaken = take(ReceiveLimiter.partLimit, received: 1)
        #expect(isNextTaken)
    }

    @Test mutating func `the rest of a read waits for the next turn if its first part exceeds the limit`() {
        let isTaken = take(mebibyte + 1, received: 1)
        let mayContinue = limiter.mayContinue()
        #expect(isTaken && !mayContinue && limiter.isPaused)
        limiter.isPaused = false
        limiter.turnDidEnd()
        let mayContinueLater = limiter.mayContinue()
        #expect(mayContinueLater && !limiter.isPaused)
    }
}
