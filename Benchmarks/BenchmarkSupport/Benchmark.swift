internal import Glibc

/// A benchmark program with two commands:
///
/// - `run ARGUMENT... [--quick] [NAME...]` runs all series, or the named ones. For each measurement it starts the
///   program again with the other command.
/// - `measure NAME ARGUMENT...` runs one measurement and prints its figures.
package protocol Benchmark {
    /// The measurements that `measure` can run.
    static var measurements: [any Measurement.Type] { get }
    /// The number of arguments of `run` before the options.
    static var arguments: Int { get }
    /// Creates the driver of `run` from its arguments.
    static func driver(_ arguments: [String]) -> Driver
    /// Creates the series of `run` from its arguments.
    ///
    /// - Parameter isQuick: Whether to run a tenth of everything, as a smoke test.
    static func series(_ arguments: [String], isQuick: Bool) -> [Series]
}

extension Benchmark {
    package static func run() async throws {
        var given = CommandLine.arguments.dropFirst()
        switch given.popFirst() {
        case "run" where given.count >= arguments:
            run(Array(given.prefix(arguments)), options: given.dropFirst(arguments))
        case "measure":
            guard let measurement = measurements.first(where: { $0.name == given.first }) else { exit(2) }
            try await measurement.run(Array(given.dropFirst()))
        default:
            exit(2)
        }
    }

    private static func run(_ arguments: [String], options: ArraySlice<String>) {
        let names = options.filter { !$0.hasPrefix("--") }
        let all = series(arguments, isQuick: options.contains("--quick"))
        driver(arguments).run(all.filter { names.isEmpty || names.contains($0.name) })
    }
}
