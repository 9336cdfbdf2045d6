internal import Dispatch
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// A callback can open sockets, which must be in the program's network namespace. Dispatch starts its workers from the
/// thread that submits the work. A new thread inherits the namespace of the thread that starts it.
@Suite(
    .needsNetworkNamespaces,
    .timeLimit(.minutes(2))
)
struct CallbackNamespaceTests {
    /// More workers than can be idle at the time, so that this test starts new ones.
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
