internal import BenchmarkSupport
internal import CNetwatchFloors

/// Measures the rate of requests with small response bodies, their context switches, and their allocations if
/// `Floors/allocations.c` is preloaded. The figure `requests` is the number of all requests, including the warm-up.
///
/// Arguments: the client; the number of concurrent requests; the number of seconds; the URL.
enum Requests: Measurement {
    static let name = "requests"

    /// The duration in nanoseconds of the load before the measurement. It opens the connections and creates lazy
    /// values.
    private static let warmUp: Int64 = 250_000_000

    static func run(_ arguments: [String]) async throws {
        let (count, url) = (Int(arguments[1])!, arguments[3])
        let client = client(arguments[0], connections: count)
        let (warmed, _) = await Load.run(client, url, count: count, until: now() + warmUp)
        let (allocated, switched) = (floors_allocations(), floors_context_switches())
        let (start, cpu) = (now(), floors_processor_seconds())
        let deadline = start + Int64(Double(arguments[2])! * 1e9)
        let (answered, failed) = await Load.run(client, url, count: count, until: deadline)
        guard failed == 0 else { fatalError("\(failed) requests of \(arguments[0]) failed") }
        printFigure("rate", Double(answered) / (Double(now() - start) / 1e9))
        printFigure("cpu", (floors_processor_seconds() - cpu) / Double(answered) * 1e6)
        printFigure("switches", Double(floors_context_switches() - switched) / Double(answered))
        printFigure("requests", Double(warmed + answered))
        if allocated >= 0 {
            printFigure("allocations", Double(floors_allocations() - allocated) / Double(answered))
        }
    }
}
