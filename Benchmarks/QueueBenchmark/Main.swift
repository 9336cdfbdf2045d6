internal import BenchmarkSupport

/// `run FLOORS STORE SCRATCH PEERS JSON [--quick] [NAME...]`, and `measure`; `scripts/bench` calls it.
@main
enum Main: Benchmark {
    static let measurements: [any Measurement.Type] = [
        Fill.self, Enqueue.self, Drain.self, Backlog.self, Lanes.self,
    ]
    static let arguments = 5

    static func main() async throws { try await run() }

    static func driver(_ arguments: [String]) -> Driver {
        let place = Place(arguments)
        return Driver(
            floors: place.floors,
            enclosure: place.enclosure,
            json: arguments[4],
            probed: place.scratch
        )
    }

    static func series(_ arguments: [String], isQuick: Bool) -> [Series] {
        Series.all(Place(arguments), isQuick: isQuick)
    }
}

/// Where everything is.
struct Place {
    /// Where the floors were built.
    let floors: String
    /// The script that gives each command a directory of its own.
    let store: String
    /// On the disk that is measured.
    let scratch: String
    /// The command that measures other queues.
    let peers: String

    init(_ arguments: [String]) {
        floors = arguments[0]
        store = arguments[1]
        scratch = arguments[2]
        peers = arguments[3]
    }

    /// What every command is run by.
    var enclosure: String { "\(store) \(floors) \(scratch)" }
}
