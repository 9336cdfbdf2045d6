internal import Glibc

/// `run FLOORS NETWORK JSON [--quick] [NETWATCH]` runs every series; `measure NAME ARGUMENT...` is what it
/// starts for each. `scripts/bench` calls it.
@main
enum Main {
    static func main() {
        var arguments = CommandLine.arguments.dropFirst()
        switch arguments.popFirst() {
        case "run" where arguments.count >= 3:
            run(Array(arguments))
        case "measure":
            guard let measurement = measurements.first(where: { $0.name == arguments.first }) else { exit(2) }
            measurement.run(Array(arguments.dropFirst()))
        default:
            exit(2)
        }
    }

    private static func run(_ arguments: [String]) {
        let options = arguments.dropFirst(3)
        let driver = Driver(floors: arguments[0], network: arguments[1], json: arguments[2])
        driver.run(
            Series.all(isQuick: options.contains("--quick"), command: options.first { $0 != "--quick" })
        )
    }
}
