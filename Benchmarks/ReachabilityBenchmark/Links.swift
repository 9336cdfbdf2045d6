internal import BenchmarkSupport
internal import NetworkReachability

/// Measures the CPU time of the monitor's thread for changes of one interface, while another one has many addresses.
///
/// Arguments: the number of addresses; the number of changes. The changes are at least 15 ms apart, so that the monitor
/// handles each on its own.
enum Links: Measurement {
    static let name = "links"

    static func run(_ arguments: [String]) {
        let arguments = arguments.compactMap { Int($0) }
        let (addresses, changes) = (arguments[0], arguments[1])
        addAddresses(addresses)
        let monitor = PathMonitor.forBenchmark()
        let watches = manyHosts(100).map { monitor.watch($0) { _ in } }
        monitor.waitUntilQuiet()
        let thread = monitorThread()
        let before = Usage(of: thread)
        for change in 0..<changes {
            shell("ip link set far0 mtu \(1400 + change % 2)")
            pause(milliseconds: 15)
        }
        (Usage(of: thread) - before).print(as: "links")
        withExtendedLifetime(watches) {}
    }

    /// Adds addresses to `near0`, which begin at 172.16.0.0.
    private static func addAddresses(_ count: Int) {
        let address = #"printf "addr add 172.16.%d.%d/32 dev near0\n", i / 256, i % 256"#
        shell("awk 'BEGIN { for (i = 0; i < \(count); i++) \(address) }' | ip -batch -")
    }
}
