internal import BenchmarkSupport

/// The program. `scripts/bench` calls `run FLOORS STORE SCRATCH PEERS JSON [--quick] [NAME...]`, which calls `measure`.
@main
enum Main: Benchmark {
    static let measurements: [any Measurement.Type] = [
        Fill.self, Enqueue.self, Drain.self, Backlog.self, Lanes.self,
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

/// The paths of a run.
struct QueueBenchmarkPaths {
    /// The directory of the compiled floors.
    let floors: String
    /// The script that gives each command a separate directory.
    let store: String
    /// A directory on the disk that is measured.
    let scratch: String
    /// The command that measures other queues.
    let peers: String

    init(_ arguments: [String]) {
        floors = arguments[0]
        store = arguments[1]
        scratch = arguments[2]
        peers = arguments[3]
    }

    /// The command that runs every other command.
    var enclosure: String { "\(store) \(floors) \(scratch)" }
}
