internal import BenchmarkSupport
internal import CNetwatchFloors
internal import Glibc
internal import NetworkReachability
internal import Synchronization

/// Everything looked up anew, as after a notification that cannot be read.
///
/// Arguments: how many hosts; how often.
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

    /// The milliseconds that one recomputation takes, which the thread may do in several turns.
    private static func recompute(_ monitor: PathMonitor, of count: Int) -> (wall: Double, cpu: Double) {
        let done = monitor.statistics.lookups + count
        let moments = Moments()
        // While the thread sleeps the two are queued; it then runs them without a pause between them.
        monitor.occupy { pause(milliseconds: 2) }
        monitor.occupy { moments.note() }
        monitor.ingest([1, 2, 3])
        noteWhenDone(moments, monitor, done)
        return moments.difference()
    }

    /// Asks between any two turns.
    private static func noteWhenDone(_ moments: Moments, _ monitor: PathMonitor, _ done: Int) {
        monitor.occupy {
            if monitor.statistics.lookups >= done {
                moments.note()
            } else {
                noteWhenDone(moments, monitor, done)
            }
        }
    }
}

/// Moments of one thread.
private final class Moments: Sendable {
    private let moments = Mutex<[(wall: Int64, cpu: Int64)]>([])

    func note() {
        moments.withLock { $0.append((now(), floors_now(CLOCK_THREAD_CPUTIME_ID))) }
    }

    /// Milliseconds between the first and the second, when both have come.
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
