internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@Suite(.timeLimit(.minutes(5))) struct AsyncSemaphoreTests {
    private let semaphore = AsyncSemaphore(permits: 1)

    @Test func `acquiring waits until a permit is released`() async throws {
        try await semaphore.acquire()
        let second = Task.immediate { try await semaphore.acquire() }
        #expect(semaphore.waitingCount == 1)
        semaphore.release()
        try await second.value
        #expect(semaphore.waitingCount == 0)
    }

    @Test func `a cancelled waiter gets no permit, and the next waiter gets the released one`() async throws {
        try await semaphore.acquire()
        let second = Task.immediate {
            try await semaphore.run { Issue.record("it was cancelled while it waited") }
        }
        let third = Task.immediate { try await semaphore.acquire() }
        #expect(semaphore.waitingCount == 2)
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        #expect(semaphore.waitingCount == 1)
        semaphore.release()
        try await third.value
        semaphore.release()
        try await semaphore.acquire()
    }

    @Test func `groups whose tasks wait take turns`() async throws {
        let turns = Recorder<UInt32>()
        try await semaphore.acquire(for: 1)
        let tasks = ([1, 1, 1, 2, 3, 2] as [UInt32]).map { group in
            Task.immediate { try await semaphore.run(for: group) { turns.record(group) } }
        }
        #expect(semaphore.waitingCount == 6)
        semaphore.release()
        for task in tasks { try await task.value }
        #expect(turns.values == [2, 3, 1, 2, 1, 1])
    }

    @Test func `a task cancelled before it acquires gets no permit`() async throws {
        let task = Task {
            await waitForCancellation()
            _ = try await semaphore.run { Issue.record("it was cancelled before it waited") }
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        try await semaphore.acquire()
    }

    @Test func `a body that throws releases its permit`() async throws {
        struct Failure: Error {}
        await #expect(throws: Failure.self) { try await semaphore.run { throw Failure() } }
        try await semaphore.acquire()
    }

    @Test func `any order of acquiring, cancelling and releasing leaves all permits free`() async throws {
        let semaphore = AsyncSemaphore(permits: 3)
        let tasks = (0..<400).map { _ in Task { try await semaphore.run { await Task.yield() } } }
        for task in tasks.shuffled().prefix(300) {
            task.cancel()
            await Task.yield()
        }
        for task in tasks { _ = await task.result }
        for _ in 0..<3 { try await semaphore.acquire() }
        let fourth = Task.immediate { try await semaphore.acquire() }
        #expect(semaphore.waitingCount == 1)
        fourth.cancel()
        await #expect(throws: CancellationError.self) { try await fourth.value }
    }
}
