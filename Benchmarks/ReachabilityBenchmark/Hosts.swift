internal import CNetwatchFloors
internal import Glibc
internal import NetworkReachability
internal import Synchronization

/// What watching many hosts takes in memory, and what a change costs that concerns ten of them.
///
/// Arguments: how many hosts; how many changes.
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
        // Until the filter is tight and the confirmation has passed, so that their memory counts too.
        pause(milliseconds: 500)
        printFigure("hosts.memory", (residentMemory() - before) / Double(count))
        let writer = floors_netlink(0)
        var latencies: [Int64] = []
        var lookups: [Double] = []
        for change in 0..<changes {
            let (seen, looked) = (counter.value, monitor.statistics.lookups)
            let start = floors_change_route(writer, change % 2 == 0, "10.0.5.0", 24, "192.0.2.3")
            latencies.append(counter.wait(for: seen + 10) - start)
            lookups.append(Double(monitor.statistics.lookups - looked))
            pause(milliseconds: 400)
        }
        printFigures("tenOfMany", latencies: latencies)
        printFigure("tenOfMany.lookups", median(lookups))
        withExtendedLifetime((warmUp, watches)) {}
    }
}

/// Counts calls on the monitor's thread, and when the last one came.
private final class Counter: Sendable {
    private let state = Mutex((count: 0, moment: Int64(0)))

    var value: Int { state.withLock { $0.count } }

    func increment() {
        let moment = now()
        state.withLock { $0 = ($0.count + 1, moment) }
    }

    /// Returns the moment of the last call once there were so many.
    @discardableResult
    func wait(for count: Int) -> Int64 {
        while true {
            let state = state.withLock { $0 }
            if state.count >= count { return state.moment }
            pause(milliseconds: 1)
        }
    }
}
