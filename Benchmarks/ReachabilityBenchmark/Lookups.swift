internal import BenchmarkSupport
internal import CNetwatchFloors
internal import Glibc
internal import NetwatchEventLoop
internal import NetworkReachability

/// Measures the lookups of all hosts, which an unreadable notification causes.
///
/// Arguments: the number of hosts; the number of repetitions.
enum Lookups: Measurement {
    static let name = "lookups"

    static func run(_ arguments: [String]) {
        let arguments = arguments.compactMap { Int($0) }
        let monitor = PathMonitor.forBenchmark()
        let watches = manyHosts(arguments[0]).map { monitor.watch($0) { _ in } }
        let rounds = (0..<arguments[1]).map { _ in
            monitor.waitUntilQuiet()
            return recompute(monitor, of: arguments[0])
        }
        printFigure("recompute.wall", median(rounds.map(\.wall)))
        printFigure("recompute.cpu", median(rounds.map(\.cpu)))
        withExtendedLifetime(watches) {}
    }

    /// Makes the monitor look up all hosts again, and returns the elapsed time and the CPU time in milliseconds. The
    /// lookups may take several turns of the monitor's event loop.
    ///
    /// - Parameter count: The number of hosts.
    private static func recompute(_ monitor: PathMonitor, of count: Int) -> (wall: Double, cpu: Double) {
        let done = monitor.statistics.lookups + count
        let moments = Moments()
        // The next two calls are queued while the monitor's thread sleeps in this block. The thread then runs them
        // without a pause in between.
        monitor.block { pause(milliseconds: 2) }
        monitor.block { moments.note() }
        monitor.ingest([1, 2, 3])
        noteWhenDone(moments, monitor, done)
        return moments.difference()
    }

    /// Records the second timestamp once the monitor has made `done` lookups in total. Checks this in each turn.
    private static func noteWhenDone(_ moments: Moments, _ monitor: PathMonitor, _ done: Int) {
        monitor.block {
            if monitor.statistics.lookups >= done {
                moments.note()
            } else {
                noteWhenDone(moments, monitor, done)
            }
        }
    }
}

/// Timestamps that are recorded on one thread.
private final class Moments: Sendable {
    private let moments = Lock<[(wall: Int64, cpu: Int64)]>([])

    func note() {
        moments.withLock { $0.append((now(), floors_now(CLOCK_THREAD_CPUTIME_ID))) }
    }

    /// Waits until there are two timestamps. Returns the milliseconds between them.
    func difference() -> (wall: Double, cpu: Double) {
        while true {
            let moments = moments.withLock { $0 }
            if moments.count == 2 {
                return (
                    Double(moments[1].wall - moments[0].wall) / 1e6,
                    Double(moments[1].cpu - moments[0].cpu) / 1e6
                )
            }
            pause(milliseconds: 1)
        }
    }
}
