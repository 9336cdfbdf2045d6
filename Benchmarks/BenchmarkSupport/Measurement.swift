/// A measurement that runs in a child process. It prints one figure per line, as `name value`, like the floors.
package protocol Measurement: Sendable {
    /// The name that selects the measurement on the command line.
    static var name: String { get }
    /// Runs the measurement and prints its figures.
    ///
    /// - Parameter arguments: The arguments that the doc comment of the measurement describes.
    static func run(_ arguments: [String]) async throws
}

/// Prints a line with the name and the value of a figure.
package func printFigure(_ name: String, _ value: Double) {
    print(name, value)
}

/// Prints the median and the 99th percentile, in microseconds, of latencies given in nanoseconds.
///
/// - Parameter prefix: What precedes `p50` and `p99` in the names of the figures, including a dot.
package func printFigures(_ prefix: String, latencies: [Int64]) {
    let sorted = latencies.sorted()
    printFigure("\(prefix)p50", Double(sorted[sorted.count / 2]) / 1e3)
    printFigure("\(prefix)p99", Double(sorted[sorted.count * 99 / 100]) / 1e3)
}

/// Returns the median of at least one value; of an even number of values, the upper one of the two in the middle.
package func median(_ values: [Double]) -> Double {
    values.sorted()[values.count / 2]
}
