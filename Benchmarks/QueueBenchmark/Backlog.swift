internal import BenchmarkSupport
internal import Glibc
internal import OfflineQueue

/// Measures a queue with waiting requests: its start, its memory, and the duration of a claim.
///
/// Arguments: the number of claims, of 8 requests each; the directory of a queue with requests.
enum Backlog: Measurement {
    static let name = "backlog"

    static func run(_ arguments: [String]) async throws {
        let (claims, directory) = (Int(arguments[0])!, arguments[1])
        printFigure("size", fileSize("\(directory)/queue.sqlite") / 1_048_576)
        try await start(directory)
        try await claim(claims, directory)
        printFigure("memory", residentMemory() / 1024)
    }

    private static func start(_ directory: String) async throws {
        let begin = now()
        var configuration = OfflineQueue.Configuration(directory: directory)
        configuration.limits = .forBenchmark
        let queue = try await OfflineQueue(
            configuration: configuration,
            sender: IdleSender(),
            gate: ClosedGate()
        )
        try await queue.start()
        printFigure("start", Double(now() - begin) / 1e6)
        await queue.stop()
    }

    private static func claim(_ count: Int, _ directory: String) async throws {
        let store = try await SQLiteQueueStore(directory: directory, settings: .forBenchmark)
        try await store.recover(releasing: [])
        let lanes = try await store.busyLanes(in: .all, after: 0, limit: .max).map(\.id)
        var latencies: [Int64] = []
        for number in 0..<count {
            let begin = now()
            let claimed = try await store.claim(8, of: lanes[number % lanes.count])
            latencies.append(now() - begin)
            guard claimed.count == 8 else { fatalError("a lane has fewer than 8 waiting requests") }
            // Releases the requests again, so that every round finds the same number.
            try await store.conclude(claimed, .retry(countsAsAttempt: false))
        }
        printFigures("claim.", latencies: latencies)
        await store.close()
    }

    private static func fileSize(_ path: String) -> Double {
        var status = stat()
        guard stat(path, &status) == 0 else { fatalError("no \(path)") }
        return Double(status.st_size)
    }
}
