internal import Testing

@testable internal import NetwatchService

@Suite(.timeLimit(.minutes(3))) struct ConcurrencyLimitTests {
    /// Returns when exactly `count` tasks are waiting for a slot.
    private func isWaited(for limit: ConcurrencyLimit, by count: Int) async {
        while limit.waitingCount != count { await Task.yield() }
    }

    @Test func `a cancelled task leaves the queue, and the next one runs`() async throws {
        let limit = ConcurrencyLimit(1)
        let gate = HandlerGate()
        let running = Task { try await limit.run { await gate.pass() } }
        await gate.isReached()
        let cancelled = Task { try await limit.run { Issue.record("it was cancelled before its turn") } }
        await isWaited(for: limit, by: 1)
        let next = Task { try await limit.run { true } }
        await isWaited(for: limit, by: 2)
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        #expect(limit.waitingCount == 1)
        await gate.open()
        try await running.value
        #expect(try await next.value)
    }

    @Test func `a task cancelled before it waits does not run`() async throws {
        let limit = ConcurrencyLimit(1)
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            _ = try await limit.run { Issue.record("it was cancelled before") }
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        let hasTurn = try await limit.run { true }
        #expect(hasTurn)
    }

    @Test func `concurrent cancellations neither lose nor add a slot`() async throws {
        let width = 2
        let limit = ConcurrencyLimit(width)
        let tasks = (0..<400).map { _ in Task { try await limit.run { await Task.yield() } } }
        for task in tasks.shuffled().prefix(300) {
            task.cancel()
            await Task.yield()
        }
        for task in tasks { _ = await task.result }
        let gate = HandlerGate()
        let last = (0...width).map { _ in Task { try await limit.run { await gate.pass() } } }
        await gate.isReached(by: width)
        await isWaited(for: limit, by: 1)
        await gate.open()
        for task in last { try await task.value }
    }
}
