internal import BenchmarkSupport
internal import CNetwatchFloors
internal import Dispatch
internal import Glibc
internal import NetwatchEventLoop
internal import NetworkReachability

/// Measures the time from a route change to the new status, in a callback on the monitor's thread and in a listener on
/// a queue.
///
/// Arguments: how many times the route is added and deleted; the milliseconds between two changes, which must be more
/// than 10. Within 10 ms of a change, the monitor delays its reaction to the next one.
enum Edges: Measurement {
    static let name = "edges"

    /// The times of the last calls, as returned by `now()`.
    private struct Seen {
        var onThread: Int64 = 0
        var onQueue: Int64 = 0
    }

    static func run(_ arguments: [String]) {
        let arguments = arguments.compactMap { Int($0) }
        let (changes, spacing) = (arguments[0], arguments[1])
        let monitor = PathMonitor.forBenchmark()
        let host = NetworkHost("198.51.100.7")!
        let seen = Lock(Seen())
        let watch = monitor.watch(.host(host)) { _ in
            let moment = now()
            seen.withLock { $0.onThread = moment }
        }
        let manager = NetworkReachabilityManager(target: .host(host), monitor: monitor)
        manager.listenerQueue = DispatchQueue(label: "listener")
        manager.listener = { _ in
            let moment = now()
            seen.withLock { $0.onQueue = moment }
        }
        manager.startListening()
        pause(milliseconds: 300)
        let writer = floors_netlink(0)
        var thread = [[Int64]](repeating: [], count: 2)
        var queue = thread
        for change in 0..<2 * changes {
            pause(milliseconds: spacing)
            let kind = change % 2
            let start = floors_change_route(writer, kind == 0, "198.51.100.7", 32, "192.0.2.2")
            let end = waitForBoth(after: start, seen)
            thread[kind].append(end.onThread - start)
            queue[kind].append(end.onQueue - start)
        }
        for (kind, name) in ["reachable", "notReachable"].enumerated() {
            printFigures("\(name).thread.", latencies: thread[kind])
            printFigures("\(name).queue.", latencies: queue[kind])
        }
        withExtendedLifetime((watch, manager)) {}
    }

    /// Waits until both the callback and the listener were called after `start`.
    private static func waitForBoth(after start: Int64, _ seen: borrowing Lock<Seen>) -> Seen {
        while true {
            let state = seen.withLock { $0 }
            if state.onThread >= start, state.onQueue >= start { return state }
            pause(milliseconds: 1)
        }
    }
}
