/// What a child process measures. It prints a figure a line, `name value`, as the floors do.
package protocol Measurement: Sendable {
    static var name: String { get }
    /// - Parameter arguments: What is told where the measurement is declared.
    static func run(_ arguments: [String]) async throws
}

package func printFigure(_ name: String, _ value: Double) {
    print(name, value)
}

/// Prints the middle one of latencies given in nanoseconds, and one in a hundred, in microseconds.
///
/// - Parameter prefix: What their names begin with, its dot included.
package func printFigures(_ prefix: String, latencies: [Int64]) {
    let sorted = latencies.sorted()
    printFigure("\(prefix)p50", Double(sorted[sorted.count / 2]) / 1e3)
    printFigure("\(prefix)p99", Double(sorted[sorted.count * 99 / 100]) / 1e3)
}

package func median(_ values: [Double]) -> Double {
    values.sorted()[values.count / 2]
}
