internal import BenchmarkSupport

/// The benchmark of the HTTP client. `scripts/bench` calls `run FLOORS PEERS SCRATCH JSON [--quick] [NAME...]`:
///
/// - `FLOORS` is the directory of the compiled floors (minimal C programs);
/// - `PEERS` is the directory of the programs that measure other clients;
/// - `SCRATCH` is the directory with the files of nginx;
/// - `JSON` is the file to write.
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
