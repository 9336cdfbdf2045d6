internal import BenchmarkSupport
internal import CNetwatchFloors
internal import Glibc
internal import NetworkReachability

/// Measures the cost of route changes that affect none of 100 watched hosts, on the monitor's thread.
///
/// Arguments: the number of routes that are added and then deleted; 1 with the filter in the kernel, 0 without it.
enum Churn: Measurement {
    static let name = "churn"

    static func run(_ arguments: [String]) {
        let arguments = arguments.compactMap { Int($0) }
        let monitor = PathMonitor.forBenchmark(filtersRoutes: arguments[1] == 1)
        let watches = manyHosts(100).map { monitor.watch($0) { _ in } }
        let thread = monitorThread()
        measureChurn(arguments[0], of: thread)
        withExtendedLifetime(watches) {}
    }
}

/// Measures the cost of the route changes of ``Churn`` for `ip monitor route`, with its output discarded.
///
/// Argument: the number of routes that are added and then deleted.
enum PeerChurn: Measurement {
    static let name = "peer-churn"

    static func run(_ arguments: [String]) {
        let arguments = arguments.compactMap { Int($0) }
        let peer = contents(ofCommand: "exec 3>&1; ip monitor route >/dev/null 3>&- & echo $! >&3")
        defer { kill(pid_t(peer)!, SIGTERM) }
        measureChurn(arguments[0], of: "/proc/\(peer)")
    }
}

/// Prints the usage of a thread while `count` routes are added and then deleted.
///
/// - Parameter thread: The directory of the thread in `/proc`.
private func measureChurn(_ count: Int, of thread: String) {
    // Waits until the filter is in place, and until all hosts were looked up again to confirm their statuses.
    pause(milliseconds: 700)
    let before = Usage(of: thread)
    changeRoutes("add", 0..<count)
    changeRoutes("del", 0..<count)
    pause(milliseconds: 50)
    (Usage(of: thread) - before).print(as: "churn")
}

/// Adds or deletes routes to single addresses, which begin at 20.0.0.0.
///
/// - Parameter verb: `add` or `del`.
private func changeRoutes(_ verb: String, _ numbers: Range<Int>) {
    let route = #"printf "route \#(verb) 20.%d.%d.%d via 192.0.2.2\n", i / 65536, i / 256 % 256, i % 256"#
    shell(
        "awk 'BEGIN { for (i = \(numbers.lowerBound); i < \(numbers.upperBound); i++) \(route) }' | ip -batch -"
    )
}

/// Measures the memory of a process with a monitor while the routing table grows. Without the filter in the kernel, the
/// monitor is notified of every new route.
///
/// Arguments: the numbers of routes at which the memory is measured, in ascending order.
enum Memory: Measurement {
    static let name = "memory"

    static func run(_ arguments: [String]) {
        let arguments = arguments.compactMap { Int($0) }
        let monitor = PathMonitor.forBenchmark(filtersRoutes: false)
        let watches = manyHosts(100).map { monitor.watch($0) { _ in } }
        var sizes: [Double] = []
        for (present, count) in zip([0] + arguments, arguments) {
            changeRoutes("add", present..<count)
            pause(milliseconds: 700)
            sizes.append(residentMemory() / 1024)
            printFigure("routes.\(count)", sizes.last!)
        }
        printFigure("routes.growth", sizes.last! / sizes[0])
        withExtendedLifetime(watches) {}
    }
}
