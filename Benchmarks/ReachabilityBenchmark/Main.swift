internal import Glibc

/// `run FLOORS NETWORK JSON NETWATCH [--quick] [NAME...]` runs every series, or those named;
/// `measure NAME ARGUMENT...` is what it starts for each. `scripts/bench` calls it.
@main
enum Main {
    static func main() {
        var arguments = CommandLine.arguments.dropFirst()
        switch arguments.popFirst() {
        case "run" where arguments.count >= 4:
            run(Array(arguments))
        case "measure":
            guard let measurement = measurements.first(where: { $0.name == arguments.first }) else { exit(2) }
            measurement.run(Array(arguments.dropFirst()))
        default:
            exit(2)
        }
    }

    private static func run(_ arguments: [String]) {
        let driver = Driver(floors: arguments[0], network: arguments[1], json: arguments[2])
        let options = arguments.dropFirst(4)
        let names = options.filter { !$0.hasPrefix("--") }
        let series = Series.all(isQuick: options.contains("--quick"), command: arguments[3])
        driver.run(series.filter { names.isEmpty || names.contains($0.name) })
    }
}
