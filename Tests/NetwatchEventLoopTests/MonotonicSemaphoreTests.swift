internal import NetwatchEventLoop
internal import Testing

/// The waits of a ``MonotonicSemaphore``.
@Suite(.timeLimit(.minutes(1))) struct MonotonicSemaphoreTests {
    @Test func `each signal ends one wait`() throws {
        let semaphore = MonotonicSemaphore()
        semaphore.signal()
        semaphore.signal()
        #expect(semaphore.wait())
        #expect(semaphore.wait(for: .zero))
        #expect(!semaphore.wait(for: .zero))
    }

    @Test func `a timeout ends a wait without a signal`() {
        let semaphore = MonotonicSemaphore()
        let start = BootInstant.now
        #expect(!semaphore.wait(for: .milliseconds(20)))
        #expect(start.duration(to: .now) >= .milliseconds(20))
    }

    @Test(arguments: [nil, Duration.seconds(600)])
    func `a signal of another thread ends a wait`(timeout: Duration?) throws {
        let (request, response) = (MonotonicSemaphore(), MonotonicSemaphore())
        try startDetachedThread(named: "semaphore-test") {
            request.wait()
            response.signal()
        }
        request.signal()
        #expect(response.wait(for: timeout))
    }
}
