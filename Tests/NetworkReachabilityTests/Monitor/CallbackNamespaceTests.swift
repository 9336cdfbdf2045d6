internal import Dispatch
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// Work that a callback submits to Dispatch must run in the program's network namespace, because it may open sockets.
///
/// Dispatch starts its worker threads from the thread that submits the work, here the monitor's thread. A new thread
/// inherits the namespace of the thread that starts it.
@Suite(
    .needsNetworkNamespaces,
    .timeLimit(.minutes(5))
)
struct CallbackNamespaceTests {
    /// The number of submitted blocks. It is larger than the number of idle workers, so that Dispatch starts new ones.
    private static let workers = 64

    @Test func `work submitted by a callback runs in the program's namespace`() async throws {
        let testbed = try VethTestbed()
        let monitor = PathMonitor(configuration: .init(in: testbed.near))
        let namespaces = Recorder<String>()
        let gate = Gate()
        let watch = monitor.watch(.host(NetworkHost(VethTestbed.farAddress)!)) { _ in
            for _ in 0..<Self.workers {
                DispatchQueue(label: "worker").async {
                    namespaces.record(NetworkNamespace.current)
                    gate.wait()
                }
            }
        }
        defer { for _ in 0..<Self.workers { gate.open() } }
        try await namespaces.wait { $0.count == Self.workers }
        #expect(Set(namespaces.values) == [NetworkNamespace.current])
        #expect(watch.status.isReachable)
    }
}
