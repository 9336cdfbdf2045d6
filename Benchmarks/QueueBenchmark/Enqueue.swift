internal import BenchmarkSupport
internal import OfflineQueue

/// Measures the requests that a queue accepts. Each is on the disk when the call of `enqueue` returns.
///
/// Arguments: the number of producer tasks; the number of requests; the maximum number of seconds; the queue's
/// directory.
enum Enqueue: Measurement {
    static let name = "enqueue"

    static func run(_ arguments: [String]) async throws {
        let (producers, count) = (Int(arguments[0])!, Int(arguments[1])!)
        let queue = try await OfflineQueue(configuration: .init(directory: arguments[3]))
        let interval = MeasuredInterval(seconds: Double(arguments[2])!)
        let latencies = try await withThrowingTaskGroup { group in
            for _ in 0..<producers {
                group.addTask { try await produce(count / producers, until: interval.deadline, queue) }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        interval.end(operations: latencies.count)
        printFigures("", latencies: latencies)
        await queue.stop()
    }

    /// Returns the duration of each call in nanoseconds.
    private static func produce(
        _ count: Int,
        until deadline: Int64,
        _ queue: OfflineQueue
    ) async throws -> [Int64] {
        var latencies: [Int64] = []
        var start = now()
        while latencies.count < count, start < deadline {
            _ = try await queue.enqueue(.forBenchmark())
            let end = now()
            latencies.append(end - start)
            start = end
        }
        return latencies
    }
}
