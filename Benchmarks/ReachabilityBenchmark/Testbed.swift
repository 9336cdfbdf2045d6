internal import BenchmarkSupport
internal import NetworkReachability

/// Returns the addresses of many watched hosts: ten in each /24 from 10.0.0.0 on, all behind one route.
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

    /// Waits until there were no lookups for longer than a confirmation is delayed.
    func waitUntilQuiet() {
        var lookups = -1
        while lookups != statistics.lookups {
            lookups = statistics.lookups
            pause(milliseconds: 400)
        }
    }
}
