internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// A queue with requests to thousands of hosts that do not answer.
@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .serialized,
    .timeLimit(.minutes(5))
)
struct ManyHostsTests {
    private let testbed = try! VethTestbed()

    private func service() async throws -> RunningService {
        try await RunningService(
            in: try ScratchDirectory(),
            namespace: testbed.near,
            resolvingBy: ResolverFiles()
        )
    }

    /// Enqueues a request to each of these hosts.
    private func enqueue(_ hosts: Range<Int>, in service: RunningService) async throws {
        let path = service.socket
        try await offPool {
            let client = try RawClient(path)
            for host in hosts {
                let members = #""queue":"always","durability":"normal""#
                let response = try client.enqueue(#"{"url":"http://h\#(host).example:1/",\#(members)}"#)
                #expect(response.status == 202, "\(response)")
            }
        }
    }

    @Test func `hosts that do not exist or refuse connections cause fewer than 20 DNS queries a second`()
        async throws
    {
        let names = try ScriptedNameServer(in: testbed.far)
        let hosts = 0..<3000
        for host in hosts where host.isMultiple(of: 2) {
            names.set("h\(host).example", VethTestbed.farAddress)
        }
        let service = try await service()
        try await enqueue(hosts, in: service)
        // Each host is tried once at first.
        try await poll(every: .milliseconds(200)) { Set(names.queries.values).count == hosts.count }
        let (start, before) = (ContinuousClock.now, names.queries.values.count)
        try await names.queries.wait(timeout: .seconds(200)) { $0.count >= before + 200 }
        // After a pause, 64 queries may come at once.
        #expect(ContinuousClock.now - start > .seconds((200 - 64) / 20))
    }

    /// The memory of a sanitizer would count.
    private static let isMemoryMeasured = ProcessInfo.processInfo.environment["NETWATCH_SANITIZER"] == nil

    /// One user may have 5,000 lanes in memory, each with about 3 KB. A lane that is only in the store has about 75 bytes
    /// in memory.
    @Test(.enabled(if: isMemoryMeasured))
    func `further hosts use little memory`() async throws {
        let names = try ScriptedNameServer(in: testbed.far)
        let service = try await service()
        try await enqueue(0..<8000, in: service)
        let before = try #require(ResidentMemory(of: service.process.pid)).mebibytes
        try await enqueue(8000..<16_000, in: service)
        let after = try #require(ResidentMemory(of: service.process.pid)).mebibytes
        #expect(after - before < 8, "\(before) MiB, then \(after) MiB")
        withExtendedLifetime(names) {}
    }
}
