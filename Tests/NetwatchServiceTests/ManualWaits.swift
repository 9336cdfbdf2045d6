internal import NetwatchTestSupport

/// Waits that a test ends.
final class ManualWaits: Sendable {
    let started = Recorder<(duration: Duration, end: AsyncStream<Void>.Continuation)>()

    func sleep(_ duration: Duration) async throws {
        let (stream, end) = AsyncStream<Void>.makeStream()
        started.record((duration, end))
        for await _ in stream {}
        try Task.checkCancellation()
    }

    /// Ends the first waits, after they have begun.
    func end(_ count: Int) async throws {
        try await started.wait { $0.count >= count }
        for wait in started.values.prefix(count) { wait.end.finish() }
    }
}
