/// What a child process measures. It prints a figure a line, `name value`, as the floors do.
protocol Measurement: Sendable {
    static var name: String { get }
    /// - Parameter arguments: What is told where the measurement is declared.
    static func run(_ arguments: [String])
}

let measurements: [any Measurement.Type] = [
    Edges.self, Churn.self, PeerChurn.self, Memory.self, Lookups.self, Hosts.self, Idle.self, Start.self,
]

func printFigure(_ name: String, _ value: Double) {
    print(name, value)
}

/// Prints the middle one of latencies given in nanoseconds, and one in a hundred, in microseconds.
func printFigures(_ name: String, latencies: [Int64]) {
    let sorted = latencies.sorted()
    printFigure("\(name).p50", Double(sorted[sorted.count / 2]) / 1e3)
    printFigure("\(name).p99", Double(sorted[sorted.count * 99 / 100]) / 1e3)
}

func median(_ values: [Double]) -> Double {
    values.sorted()[values.count / 2]
}
