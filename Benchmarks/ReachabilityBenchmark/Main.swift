internal import BenchmarkSupport

/// The benchmark of reachability. `scripts/bench` calls `run FLOORS NETWORK JSON NETWATCH [--quick] [NAME...]`:
///
/// - `FLOORS` is the directory of the compiled floors (minimal C programs);
/// - `NETWORK` is the script `network.sh`, which creates the links of a measurement;
/// - `JSON` is the file to write;
/// - `NETWATCH` is the command to measure.
@main
enum Main: Benchmark {
    static let measurements: [any Measurement.Type] = [
        Edges.self, Churn.self, PeerChurn.self, Memory.self, Lookups.self, Hosts.self, Idle.self, Start.self,
        Resolving.self, Following.self, Links.self,
    ]
    static let arguments = 4

    static func main() async throws { try await run() }

    static func driver(_ arguments: [String]) -> Driver {
        Driver(floors: arguments[0], enclosure: "unshare --net --mount \(arguments[1])", json: arguments[2])
    }

    static func series(_ arguments: [String], isQuick: Bool) -> [Series] {
        Series.all(isQuick: isQuick, command: arguments[3])
    }
}
