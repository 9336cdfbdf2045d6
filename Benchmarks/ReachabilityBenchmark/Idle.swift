internal import BenchmarkSupport
internal import NetworkReachability

/// Measures the wake-ups and the CPU time of the monitor's thread with 100 watched hosts, while nothing happens.
///
/// Argument: the number of seconds.
enum Idle: Measurement {
    static let name = "idle"

    static func run(_ arguments: [String]) {
        let arguments = arguments.compactMap { Int($0) }
        let monitor = PathMonitor()
        let watches = manyHosts(100).map { monitor.watch($0) { _ in } }
        let thread = monitorThread()
        pause(milliseconds: 700)
        let before = Usage(of: thread)
        pause(milliseconds: 1000 * arguments[0])
        (Usage(of: thread) - before).print(as: "idle")
        withExtendedLifetime(watches) {}
    }
}
