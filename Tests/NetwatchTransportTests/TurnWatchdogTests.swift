internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchTransport

/// The watchdog's thread.
@Suite(.timeLimit(.minutes(1))) struct TurnWatchdogTests {
    /// Stops at any time, between two checks or asleep. The delay decides where the thread is, and the test must pass
    /// for each of them.
    @Test(arguments: [
        Duration.zero, TurnWatchdog.interval / 2, TurnWatchdog.interval * 5 / 4, TurnWatchdog.interval * 3,
    ])
    func `the thread ends when the watchdog is stopped`(delay: Duration) async throws {
        let ends = Recorder<Void>()
        let watchdog = TurnWatchdog()
        try watchdog.start { ends.record(()) }
        watchdog.turnWillBegin()
        watchdog.turnDidEnd()
        try await Task.sleep(for: delay)
        #expect(ends.values.isEmpty)
        watchdog.stop()
        try await ends.wait { !$0.isEmpty }
    }
}
