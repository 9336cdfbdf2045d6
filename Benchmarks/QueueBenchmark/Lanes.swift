internal import BenchmarkSupport
internal import OfflineQueue

/// Measures the delivery of waiting requests by a complete queue. Only the sender is replaced by one that succeeds
/// immediately.
///
/// Arguments: the number of requests; the number of lanes, each with a separate origin; the queue's directory.
enum Lanes: Measurement {
    static let name = "lanes"

    static func run(_ arguments: [String]) async throws {
        let (count, lanes) = (Int(arguments[0])!, Int(arguments[1])!)
        var configuration = OfflineQueue.Configuration(directory: arguments[2])
        configuration.limits = .forBenchmark
        let queue = try await OfflineQueue(
            configuration: configuration,
            sender: PromptSender(),
            gate: OpenGate()
        )
        for first in stride(from: 0, to: count, by: 500) {
            let numbers = first..<min(first + 500, count)
            _ = try await queue.enqueue(numbers.map { (.forBenchmark(lane: $0 % lanes), EnqueueOptions()) })
        }
        let interval = MeasuredInterval(seconds: 3600)
        try await queue.start()
        try await queue.waitForDeliveries(count)
        interval.end(operations: count)
        await queue.stop()
    }
}

private struct PromptSender: AttemptSender {
    func send(_ attempt: Attempt) async -> AttemptOutcome {
        .forBenchmark
    }

    func dropConnections() async {}
}

private struct OpenGate: HostGate {
    func watch(_ endpoint: Endpoint, report: @escaping @Sendable (GateState) -> Void) -> (any GateWatch)? {
        report(.reachable(generation: 1))
        return nil
    }
}
