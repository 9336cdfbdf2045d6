internal import BenchmarkSupport
internal import CNetwatchFloors
internal import Glibc
internal import NetworkReachability
internal import Synchronization

/// The memory per watched host, and the cost of a change that affects ten of many hosts: while nothing else happens,
/// and while all hosts are being looked up again.
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
        // Wait until the filter is in place and the confirmation is over, so that their memory is included.
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
            // Wait until the confirmation starts to look everything up again.
            pause(milliseconds: 155)
            return measureChange(2 * number + 1, writer, monitor, counter).latency
        }
        printFigures("tenOfMany.meanwhile.", latencies: busy)
        withExtendedLifetime((warmUp, watches)) {}
    }

    /// Moves ten hosts to another gateway, or back.
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

/// Counts the calls on the monitor's thread and records the time of the last one.
private final class Counter: Sendable {
    private let state = Mutex((count: 0, moment: Int64(0)))

    var value: Int { state.withLock { $0.count } }

    func increment() {
        let moment = now()
        state.withLock { $0 = ($0.count + 1, moment) }
    }

    /// Waits for a number of calls. Returns the time of the last one.
    @discardableResult
    func wait(for count: Int) -> Int64 {
        while true {
            let state = state.withLock { $0 }
            if state.count >= count { return state.moment }
            pause(milliseconds: 1)
        }
    }
}
