internal import BenchmarkSupport
internal import OfflineQueue

/// Creates a queue with waiting requests for other measurements. Prints nothing.
///
/// Arguments: the number of requests; the number of servers, at most 255; the directory.
enum Fill: Measurement {
    static let name = "fill"

    static func run(_ arguments: [String]) async throws {
        let (count, servers) = (Int(arguments[0])!, Int(arguments[1])!)
        let store = try await SQLiteQueueStore(directory: arguments[2], settings: .forBenchmark)
        for first in stride(from: 0, to: count, by: 500) {
            let numbers = first..<min(first + 500, count)
            let requests = try numbers.map { number in
                try NewRequest(.forBenchmark(server: number % servers), body: .inline(.forBenchmark))
            }
            _ = try await store.enqueue(requests)
        }
        await store.close()
    }
}
