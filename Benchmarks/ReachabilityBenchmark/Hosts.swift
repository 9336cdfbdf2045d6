internal import BenchmarkSupport
internal import CNetwatchFloors
internal import Glibc
internal import NetwatchEventLoop
internal import NetworkReachability

/// Measures the memory per watched host, and the latency of a route change that affects ten of many hosts. The latency
/// is measured while nothing else happens, and while the monitor looks up all hosts again.
///
/// Arguments: the number of hosts; the number of changes.
enum Hosts: Measurement {
    static let name = "hosts"

    static func run(_ arguments: [String]) {
        let arguments = arguments.compactMap { Int($0) }
        let (count, changes) = (arguments[0], arguments[1])
        let counter = Counter()
        let monitor = PathMonitor.forBenchmark()
        let warmUp = monitor.watch(.general) { _ in }
        pause(milliseconds: 300)
        let before = residentMemory()
        let watches = manyHosts(count).map { monitor.watch($0) { _ in counter.increment() } }
        counter.wait(for: count)
        // Waits until the filter is in place, and until all hosts were looked up again to confirm their statuses. The
        // measured memory then includes what both need.
        pause(milliseconds: 500)
        printFigure("hosts.memory", (residentMemory() - before) / Double(count))
        let writer = floors_netlink(0)
        let quiet = (0..<changes).map { number in
            monitor.waitUntilQuiet()
            return measureChange(number, writer, monitor, counter)
        }
        printFigures("tenOfMany.", latencies: quiet.map(\.latency))
        printFigure("tenOfMany.lookups", median(quiet.map { Double($0.lookups) }))
        let busy = (0..<changes).map { number in
            monitor.waitUntilQuiet()
            _ = measureChange(2 * number, writer, monitor, counter)
            // Waits until the monitor starts to look up all hosts again, 150 ms after the change.
            pause(milliseconds: 155)
            return measureChange(2 * number + 1, writer, monitor, counter).latency
        }
        printFigures("tenOfMany.meanwhile.", latencies: busy)
        withExtendedLifetime((warmUp, watches)) {}
    }

    /// Adds a route that moves ten hosts to another gateway, or deletes it, and waits for their ten callbacks.
    ///
    /// - Parameter number: The number of the change. The route is added if it is even.
    /// - Returns: The time from the change to the tenth callback in nanoseconds, and the number of lookups.
    private static func measureChange(
        _ number: Int,
        _ writer: CInt,
        _ monitor: PathMonitor,
        _ counter: Counter
    ) -> (latency: Int64, lookups: Int) {
        let (seen, lookups) = (counter.value, monitor.statistics.lookups)
        let start = floors_change_route(writer, number % 2 == 0, "10.0.5.0", 24, "192.0.2.3")
        let latency = counter.wait(for: seen + 10) - start
        return (latency, monitor.statistics.lookups - lookups)
    }
}

/// Counts the callbacks of all watches and records the time of the last one.
private final class Counter: Sendable {
    private let state = Lock((count: 0, moment: Int64(0)))

    var value: Int { state.withLock { $0.count } }

    func increment() {
        let moment = now()
        state.withLock { $0 = ($0.count + 1, moment) }
    }

    /// Waits until the total number of callbacks is at least `count`. Returns the time of the last one.
    @discardableResult
    func wait(for count: Int) -> Int64 {
        while true {
            let state = state.withLock { $0 }
            if state.count >= count { return state.moment }
            pause(milliseconds: 1)
        }
    }
}
