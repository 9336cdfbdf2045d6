/// A measurement in a child process. Like the floors it prints one figure per line: `name value`.
package protocol Measurement: Sendable {
    static var name: String { get }
    /// - Parameter arguments: The arguments described at each measurement.
    static func run(_ arguments: [String]) async throws
}

package func printFigure(_ name: String, _ value: Double) {
    print(name, value)
}

/// Prints the median and the 99th percentile, in microseconds, of latencies given in nanoseconds.
///
/// - Parameter prefix: The prefix of the figures' names, including the dot.
package func printFigures(_ prefix: String, latencies: [Int64]) {
    let sorted = latencies.sorted()
    printFigure("\(prefix)p50", Double(sorted[sorted.count / 2]) / 1e3)
    printFigure("\(prefix)p99", Double(sorted[sorted.count * 99 / 100]) / 1e3)
}

package func median(_ values: [Double]) -> Double {
    values.sorted()[values.count / 2]
}
