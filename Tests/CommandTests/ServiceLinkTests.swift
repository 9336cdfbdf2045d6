internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .timeLimit(.minutes(5))
)
struct ServiceLinkTests {
    private func send(_ count: Int, to server: ScriptedServer, over service: RunningService) async throws {
        for number in 1...count {
            let sent = try await service.run(
                "send",
                "\(server.url)/orders/\(number)",
                "-d",
                "\(number)",
                "--fifo"
            )
            #expect(sent.ending == .exited(0))
            #expect(sent.errors.first?.hasPrefix("queued: ") == true, "\(sent.errors)")
        }
    }

    @Test func `requests kept while the carrier is down are delivered in order, each once`() async throws {
        let testbed = try VethTestbed()
        let server = try ScriptedServer(address: VethTestbed.farAddress, in: testbed.far)
        let service = try await RunningService(in: try ScratchDirectory(), namespace: testbed.near)
        try testbed.setCable(connected: false)
        try await send(3, to: server, over: service)
        #expect(server.requests.isEmpty)
        let waiting = try await service.queue()
        #expect(waiting.map { $0["state"] as? String } == ["pending", "pending", "pending"])
        #expect(waiting.map { $0["attempts"] as? Int } == [0, 0, 0], "being offline costs no attempt")
        try testbed.setCable(connected: true)
        await server.requests(atLeast: 3)
        #expect(try await service.finalStates() == ["delivered", "delivered", "delivered"])
        #expect(server.requests.map(\.target) == ["/orders/1", "/orders/2", "/orders/3"])
    }

    @Test func `a request in flight at SIGKILL is repeated with the same key, in its position`()
        async throws
    {
        let testbed = try VethTestbed()
        let server = try ScriptedServer(address: VethTestbed.farAddress, in: testbed.far) { request in
            request.number == 1 ? .stall(then: .close) : .respond("")
        }
        let directory = try ScratchDirectory()
        let first = try await RunningService(in: directory, namespace: testbed.near)
        let waiting = try Command.start(
            ["send", server.url + "/orders/1", "-d", "1", "--fifo", "--socket", first.socket],
            in: testbed.near
        )
        await server.requests(atLeast: 1)
        try await send(1, to: server, over: first)
        try await first.kill()
        #expect(try await waiting.end() == .exited(2), "no response arrived")
        let second = try await RunningService(in: directory, namespace: testbed.near)
        #expect(try await second.finalStates() == ["delivered", "delivered"])
        let keys = server.requests.map { $0.values(of: "Idempotency-Key") }
        #expect(server.requests.count == 3)
        #expect(keys[0] == keys[1] && keys[1] != keys[2])
    }

    /// Replaces `near`'s address with another one, as when a host roams.
    private func roam(_ testbed: VethTestbed) throws {
        try testbed.near.ip(
            "addr del \(VethTestbed.nearAddress)/24 dev near0",
            "addr add 192.0.2.77/24 dev near0"
        )
    }

    @Test func `a path change during an attempt does not block the lane`() async throws {
        let testbed = try VethTestbed()
        let server = try ScriptedServer(address: VethTestbed.farAddress, in: testbed.far) { request in
            request.number == 1 ? .stall(then: .close) : .respond("")
        }
        let service = try await RunningService(in: try ScratchDirectory(), namespace: testbed.near)
        let waiting = try Command.start(
            ["send", server.url, "-d", "1", "--fifo", "--socket", service.socket],
            in: testbed.near
        )
        await server.requests(atLeast: 1)
        try roam(testbed)
        #expect(try await waiting.end() == .exited(0))
        #expect(waiting.errors.values == ["delivered: HTTP 200"])
        #expect(server.requests.count == 2)
        #expect(try await service.queue().first?["attempts"] as? Int == 1)
    }

    @Test func `a path change between two requests costs no attempt`() async throws {
        let testbed = try VethTestbed()
        let server = try ScriptedServer(address: VethTestbed.farAddress, in: testbed.far)
        let service = try await RunningService(in: try ScratchDirectory(), namespace: testbed.near)
        #expect(try await service.run("send", server.url, "-d", "1").errors == ["delivered: HTTP 200"])
        try roam(testbed)
        #expect(try await service.run("send", server.url, "-d", "2").errors == ["delivered: HTTP 200"])
        #expect(try await service.queue().map { $0["attempts"] as? Int } == [1, 1])
    }

    @Test func `flush with a host applies to the requests of this host only`() async throws {
        let server = try ScriptedServer {
            $0.number == 1
                ? .respond(status: 503, headers: [.init("Retry-After", "3600")], body: []) : .respond("")
        }
        let service = try await RunningService(in: try ScratchDirectory())
        _ = try await service.run("send", server.url, "-d", "x")
        let unknown = try await service.run("queue", "flush", "--host", "unknown.example")
        #expect(unknown.ending == .exited(1))
        #expect(unknown.errors.first?.contains("no lane to the host `unknown.example`") == true)
        #expect(server.requests.count == 1)
        let flushed = try await service.run("queue", "flush", "--host", "127.0.0.1")
        #expect(flushed.ending == .exited(0))
        #expect(flushed.errors.first?.hasPrefix("flushed the lanes to `127.0.0.1`: ") == true)
        #expect(try await service.finalStates() == ["delivered"])
    }

    @Test func `flush tries requests that wait for their backoff`() async throws {
        let server = try ScriptedServer {
            $0.number == 1
                ? .respond(status: 503, headers: [.init("Retry-After", "3600")], body: []) : .respond("")
        }
        let service = try await RunningService(in: try ScratchDirectory())
        let sent = try await service.run("send", server.url, "-d", "x")
        #expect(sent.errors.first?.hasPrefix("queued: ") == true)
        #expect(
            try await service.run("queue", "flush").errors == [
                "flushed all lanes: 1 request pending or in flight",
                "warning: opened 1 lane before the end of a server's Retry-After: 127.0.0.1",
            ]
        )
        #expect(try await service.finalStates() == ["delivered"])
        #expect(server.requests.count == 2)
    }
}
