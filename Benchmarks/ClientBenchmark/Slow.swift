internal import BenchmarkSupport
internal import CNetwatchFloors

/// Measures many responses that are all open at once.
///
/// Arguments: the client; the number of responses; the URL of `Floors/server.c`, which completes no response before all
/// are open.
enum Slow: Measurement {
    static let name = "slow"

    static func run(_ arguments: [String]) async throws {
        let count = Int(arguments[1])!
        let client = client(arguments[0], connections: count)
        let (start, cpu) = (now(), floors_processor_seconds())
        let (answered, _) = await Load.run(client, "\(arguments[2])/\(count)", count: count, until: 0)
        printFigure("answered", Double(answered))
        printFigure("seconds", Double(now() - start) / 1e9)
        printFigure("cpu", (floors_processor_seconds() - cpu) / Double(count) * 1e6)
        printFigure("memory", peakMemory() / 1024)
    }
}
