internal import BenchmarkSupport

/// The benchmark of the queue. `scripts/bench` calls `run FLOORS STORE SCRATCH PEERS JSON [--quick] [NAME...]`, where
/// `JSON` is the file to write and ``QueueBenchmarkPaths`` describes the other arguments.
@main
enum Main: Benchmark {
    static let measurements: [any Measurement.Type] = [
        Fill.self, Enqueue.self, Drain.self, Backlog.self, Lanes.self, LaneMemory.self, Sending.self,
    ]
    static let arguments = 5

    static func main() async throws { try await run() }

    static func driver(_ arguments: [String]) -> Driver {
        let paths = QueueBenchmarkPaths(arguments)
        return Driver(
            floors: paths.floors,
            enclosure: paths.enclosure,
            json: arguments[4],
            probed: paths.scratch
        )
    }

    static func series(_ arguments: [String], isQuick: Bool) -> [Series] {
        Series.all(QueueBenchmarkPaths(arguments), isQuick: isQuick)
    }
}

/// The paths that `run` receives as arguments.
struct QueueBenchmarkPaths {
    /// The directory of the compiled floors (minimal C programs).
    let floors: String
    /// The script `store.sh`, which gives each command a separate directory.
    let store: String
    /// The directory for the stores, on the disk to measure.
    let scratch: String
    /// The command that measures other queues: `peers.py` with its interpreter.
    let peers: String

    init(_ arguments: [String]) {
        floors = arguments[0]
        store = arguments[1]
        scratch = arguments[2]
        peers = arguments[3]
    }

    /// The command that is put before each measurement.
    var enclosure: String { "\(store) \(floors) \(scratch)" }
}
