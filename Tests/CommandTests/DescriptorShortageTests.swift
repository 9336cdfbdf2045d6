internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// The built service on a host that is short of ports or descriptors. An attempt that fails for this reason does not
/// count.
@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .serialized,
    .timeLimit(.minutes(5))
)
struct DescriptorShortageTests {
    private let words = "this machine is short of descriptors, memory, threads or ports"

    @Test func `attempts without a free local port are not counted`() async throws {
        let run = try await ReconnectRun()
        try run.cuts.near.setParameter("net/ipv4/ip_local_port_range", to: "40000 40001")
        for number in 1...2 {
            _ = try await run.enqueue("/held-\(number)")
            await run.server.requests(atLeast: number)
        }
        let id = try await run.enqueue("/third")
        let short = try await run.service.request(id) { request in
            request["deferrals"] as? Int ?? 0 >= 2 || request["state"] as? String == "dead"
        }
        #expect(short["attempts"] as? Int == 0, "\(short)")
        #expect(
            (short["last_error"] as? String)?.contains("Cannot assign requested address") == true,
            "\(short)"
        )
        let shown = try await run.service.run("queue", "show", id).output
        #expect(shown.contains { $0.contains("pending: \(words)") }, "\(shown)")
        try run.cuts.near.setParameter("net/ipv4/ip_local_port_range", to: "40000 40100")
        let over = try await run.end(of: id)
        #expect(over["state"] as? String == "delivered" && over["attempts"] as? Int == 1, "\(over)")
    }

    @Test func `a service without descriptors reports the shortage without flooding its log`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.pause()
        _ = try await service.run("send", "http://127.0.0.1:1/", "--id", "waited", "--queue", "always")
        let directory = "/proc/\(service.process.pid)/fd"
        let names = try FileManager.default.contentsOfDirectory(atPath: directory)
        let limit = try #require(names.compactMap(Int.init).max()) + 4
        try service.limitDescriptors(to: limit)
        let clients = WaitingClients(of: "waited", at: service.socket, count: limit)
        let refused = try await service.run("queue", "list")
        #expect(refused.ending == .exited(75), "\(refused.errors)")
        #expect(refused.errors.first?.contains("is busy: the service is short of descriptors") == true)
        // libdispatch would end the service if no descriptor was left.
        let open = try FileManager.default.contentsOfDirectory(atPath: directory)
        #expect(open.count <= limit - 3, "\(open.count) of \(limit)")
        try service.limitDescriptors(to: 1024)
        #expect(try await service.run("queue", "list").ending == .exited(0))
        withExtendedLifetime(clients) {}
        // While the command ran, the service retried ten times per second, but must log only some of the failures.
        let logged = service.process.errors.values.filter { $0.contains("could not accept") }
        #expect((1...5).contains(logged.count), "\(logged)")
        #expect(logged.first?.contains("Too many open files") == true)
    }

    @Test func `a command without descriptors reports its own shortage`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        let list = [Command.path, "queue", "list", "--socket", service.socket]
        let short = try await Subprocess("/usr/bin/prlimit", ["--nofile=10"] + list).outcome()
        #expect(short.ending == .exited(2), "\(short.errors)")
        let words = short.errors.joined(separator: "\n")
        #expect(words.contains("could not connect to"), "\(words)")
        #expect(words.contains("short of descriptors") && words.contains("Too many open files"), "\(words)")
    }

    @Test func `a TLS handshake without a free descriptor is not a configuration error`()
        async throws
    {
        let run = try await ReconnectRun()
        let service = run.service
        // Without a path, the request is not tried before the descriptor limit is set.
        try run.cuts.cut(.route)
        let id = try await run.enqueue("/tls", scheme: "https")
        // Connected before the limit is set, because the service refuses new connections after that.
        let watch = try await RequestWatch(of: id, in: service)
        try service.limitDescriptors(to: service.limit(leaving: 1))
        try run.cuts.restore(.route)
        let short = try await watch.entry { request in
            let count = request["deferrals"] as? Int ?? 0
            return count >= 1 || request["hold_reason"] != nil || request["state"] as? String == "dead"
        }
        #expect(short["hold_reason"] == nil && short["deferrals"] as? Int ?? 0 >= 1, "\(short)")
        try service.limitDescriptors(to: 1024)
        let over = try await watch.entry { $0["state"] as? String == "dead" }
        #expect((over["last_error"] as? String)?.hasPrefix("failed 1 time: ") == true, "\(over)")
    }
}

/// Clients that wait for a request to finish. The connection of each one uses a descriptor of the service.
private struct WaitingClients {
    private let clients: [RawClient]

    init(of id: String, at path: String, count: Int) {
        clients = (0..<count).compactMap { _ in try? RawClient(path) }
        let request = "GET /v1/requests/\(id)?wait=300 HTTP/1.1\r\nHost: x\r\n\r\n"
        for client in clients { try? client.send(request) }
    }
}

/// A request of a service, observed over connections that exist from the beginning.
private final class RequestWatch {
    private let id: String
    private let client: RawClient
    private let events: Subprocess

    init(of id: String, in service: RunningService) async throws {
        self.id = id
        client = try RawClient(service.socket)
        events = try await service.events()
        // The service has accepted the client's connection when it responds.
        _ = try await entry { _ in true }
    }

    deinit { events.signal(SIGKILL) }

    /// Waits until the request's entry satisfies a condition, and returns it. Asks for it after each event of the queue.
    func entry(where isWanted: ([String: Any]) -> Bool) async throws -> [String: Any] {
        var entry: [String: Any] = [:]
        try await events.output.until(timeout: RunningService.longestSilence) {
            let response = try client.request("GET /v1/requests/\(id) HTTP/1.1\r\nHost: x\r\n\r\n")
            entry = try Command.json(response.body)["request"] as? [String: Any] ?? [:]
            return !entry.isEmpty && isWanted(entry)
        }
        return entry
    }
}

extension RunningService {
    /// The descriptor limit that lets the service open `count` more descriptors.
    fileprivate func limit(leaving count: Int) throws -> Int {
        let names = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process.pid)/fd")
        let used = Set(names.compactMap(Int.init))
        return (0...).lazy.filter { !used.contains($0) }.prefix(count).reduce(0) { max($0, $1 + 1) }
    }

    fileprivate func limitDescriptors(to limit: Int) throws {
        _ = try shell("prlimit --pid \(process.pid) --nofile=\(limit):4096")
    }
}
