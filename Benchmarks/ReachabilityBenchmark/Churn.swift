internal import BenchmarkSupport
internal import CNetwatchFloors
internal import Glibc
internal import NetworkReachability

/// The cost of route changes that affect no watched host, with 100 watched hosts.
///
/// Arguments: the number of routes that are added and then deleted; 1 with the kernel's filter, 0 without it.
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

/// The cost of the same changes for `ip monitor`, with its output discarded.
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

private func measureChurn(_ count: Int, of thread: String) {
    // Wait until the filter is in place and the confirmation is over.
    pause(milliseconds: 700)
    let before = Usage(of: thread)
    changeRoutes("add", 0..<count)
    changeRoutes("del", 0..<count)
    pause(milliseconds: 50)
    (Usage(of: thread) - before).print(as: "churn")
}

/// Adds or deletes host routes from 20.0.0.0 on.
private func changeRoutes(_ verb: String, _ numbers: Range<Int>) {
    let route = #"printf "route \#(verb) 20.%d.%d.%d via 192.0.2.2\n", i / 65536, i / 256 % 256, i % 256"#
    shell(
        "awk 'BEGIN { for (i = \(numbers.lowerBound); i < \(numbers.upperBound); i++) \(route) }' | ip -batch -"
    )
}

/// The memory of the process while the routing table grows and every change is announced to it.
///
/// Arguments: the route counts, in ascending order. Each is one measurement.
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
