internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchTransport

/// The watchdog's thread.
@Suite(.timeLimit(.minutes(5))) struct TurnWatchdogTests {
    /// The delay decides whether the stop comes between two checks or while the thread is asleep. The thread must end
    /// in each case.
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
