internal import BenchmarkSupport

/// The program. `scripts/bench` calls `run FLOORS PEERS SCRATCH JSON [--quick] [NAME...]`, which calls `measure`.
@main
enum Main: Benchmark {
    static let measurements: [any Measurement.Type] = [
        Requests.self, Download.self, Save.self, Upload.self, Slow.self, CurlTool.self, Addresses.self,
    ]
    static let arguments = 4

    static func main() async throws { try await run() }

    static func driver(_ arguments: [String]) -> Driver {
        Driver(floors: arguments[0], enclosure: "", json: arguments[3])
    }

    static func series(_ arguments: [String], isQuick: Bool) -> [Series] {
        Series.all(ClientBenchmarkPaths(arguments), isQuick: isQuick)
    }
}
