internal import Testing

@testable internal import NetwatchTransport

/// The thread beside the engine's.
@Suite(.timeLimit(.minutes(1))) struct TurnWatchdogTests {
    /// Whenever it is told, between two looks or asleep.
    @Test(arguments: [
        Duration.zero, TurnWatchdog.interval / 2, TurnWatchdog.interval * 5 / 4, TurnWatchdog.interval * 3,
    ])
    func `it ends when it is stopped`(delay: Duration) async throws {
        var watchdog: TurnWatchdog? = try TurnWatchdog()
        weak let remains = watchdog
        watchdog?.turnBegins()
        watchdog?.turnEnds()
        try await Task.sleep(for: delay)
        watchdog?.stop()
        watchdog = nil
        // Its thread keeps it.
        while remains != nil { try await Task.sleep(for: .milliseconds(10)) }
    }
}
