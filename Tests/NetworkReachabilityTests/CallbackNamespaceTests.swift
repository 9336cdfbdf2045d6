internal import Dispatch
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// A program's callbacks open sockets of their own. Dispatch starts its workers from the thread that submits work, and a new
/// thread is in the namespace of the one that starts it.
@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .timeLimit(.minutes(2))
)
struct CallbackNamespaceTests {
    /// More than can be idle at the time, so that some are started for this.
    private static let workers = 64

    @Test func `work submitted by a callback runs in the program's namespace`() async throws {
        let testbed = try VethTestbed()
        var configuration = PathMonitor.Configuration()
        configuration.networkNamespace = testbed.near.path
        let monitor = PathMonitor(configuration: configuration)
        let places = Recorder<String>()
        let gate = Gate()
        let watch = monitor.watch(.host(NetworkHost(VethTestbed.farAddress)!)) { _ in
            for _ in 0..<Self.workers {
                DispatchQueue(label: "worker").async {
                    places.record(NetworkNamespace.current)
                    gate.wait()
                }
            }
        }
        defer { for _ in 0..<Self.workers { gate.open() } }
        try await places.wait { $0.count == Self.workers }
        #expect(Set(places.values) == [NetworkNamespace.current])
        #expect(watch.status.isReachable)
    }
}
