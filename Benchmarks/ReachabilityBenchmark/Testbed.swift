internal import BenchmarkSupport
internal import NetworkReachability

/// Returns `count` hosts to watch: ten addresses in each /24 from 10.0.0.0 on, all behind the same route.
func manyHosts(_ count: Int) -> [PathTarget] {
    (0..<count).map { .host(NetworkHost("10.\(($0 / 10) >> 8).\(($0 / 10) & 255).\($0 % 10 + 1)")!) }
}

extension PathMonitor {
    /// Creates a monitor that publishes every change immediately (without settle time).
    static func forBenchmark(filtersRoutes: Bool = true) -> PathMonitor {
        var configuration = Configuration()
        configuration.settle = .zero
        configuration.filtersRoutes = filtersRoutes
        return PathMonitor(configuration: configuration)
    }

    /// Waits until there were no lookups for 400 ms. This is longer than the delay of 150 ms after which all hosts are
    /// looked up again to confirm a change.
    func waitUntilQuiet() {
        var lookups = -1
        while lookups != statistics.lookups {
            lookups = statistics.lookups
            pause(milliseconds: 400)
        }
    }
}
