internal import BenchmarkSupport
internal import OfflineQueue

/// Measures the state changes of requests that are claimed and concluded as delivered, directly at the store. Each
/// request changes its state twice.
///
/// Arguments: the number of requests per claim; the maximum number of seconds; the directory of a queue with requests.
enum Drain: Measurement {
    static let name = "drain"

    static func run(_ arguments: [String]) async throws {
        let batch = Int(arguments[0])!
        let store = try await SQLiteQueueStore(directory: arguments[2], settings: .forBenchmark)
        try await store.recover(releasing: [])
        let lanes = try await store.busyLanes(in: .all, after: 0, limit: .max).map(\.id)
        let interval = MeasuredInterval(seconds: Double(arguments[1])!)
        var transitions = 0
        while now() < interval.deadline {
            let claimed = try await store.claim(batch, of: lanes[0])
            if claimed.isEmpty { break }
            try await store.conclude(claimed, .delivered(status: 200))
            transitions += 2 * claimed.count
        }
        interval.end(operations: transitions)
        await store.close()
    }
}
