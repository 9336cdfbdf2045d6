internal import CNetwatchFloors
internal import Glibc
internal import NetworkReachability

/// Milliseconds to sleep.
func pause(milliseconds: Int) {
    floors_sleep(Int64(milliseconds) * 1_000_000)
}

/// A moment of `CLOCK_MONOTONIC` in nanoseconds, the same on every thread.
func now() -> Int64 {
    floors_now(CLOCK_MONOTONIC)
}

/// Runs a shell command to its end.
func shell(_ command: String) {
    guard system(command) == 0 else { fatalError("failed: \(command)") }
}

/// The addresses that many hosts are watched at: ten in each /24 from 10.0.0.0 on, all behind one route.
func manyHosts(_ count: Int) -> [PathTarget] {
    (0..<count).map { .host(NetworkHost("10.\(($0 / 10) >> 8).\(($0 / 10) & 255).\($0 % 10 + 1)")!) }
}

extension PathMonitor {
    static func forBenchmark(filtersRoutes: Bool = true) -> PathMonitor {
        var configuration = Configuration()
        configuration.settle = .zero
        configuration.filtersRoutes = filtersRoutes
        return PathMonitor(configuration: configuration)
    }

    /// Waits until nothing has been looked up for longer than a confirmation is put off.
    func waitUntilQuiet() {
        var lookups = -1
        while lookups != statistics.lookups {
            lookups = statistics.lookups
            pause(milliseconds: 400)
        }
    }
}
