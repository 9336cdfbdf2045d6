internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

/// The built service while a name server returns the address of another server, which responds to plain HTTP in place
/// of the real one.
@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .serialized,
    .timeLimit(.minutes(30))
)
struct MisdirectedNameTests {
    private static let rows = CheckSize.choose(small: 500, medium: 500, full: 10_000)
    private static let name = "server.example"
    private static let otherAddress = "192.0.2.9"

    private let directory = try! ScratchDirectory()
    private let testbed: VethTestbed
    private let names: ScriptedNameServer
    private let files: ResolverFiles
    private let arrivals = Arrivals()
    private let real: ScriptedServer
    private let other: ScriptedServer

    init() throws {
        testbed = try VethTestbed()
        try testbed.far.ip("addr add \(Self.otherAddress)/24 dev far0")
        names = try ScriptedNameServer(in: testbed.far)
        files = try ResolverFiles()
        let arrivals = self.arrivals
        real = try ScriptedServer(address: VethTestbed.farAddress, in: testbed.far) { request in
            arrivals.add(request.target, toReal: true)
            return .respond(status: 201, headers: [.init("X-Server", "real")])
        }
        other = try ScriptedServer(address: Self.otherAddress, port: real.port, in: testbed.far) { request in
            arrivals.add(request.target, toReal: false)
            return Self.otherResponse(to: request.target)
        }
    }

    /// The targets that each server received.
    private final class Arrivals: Sendable {
        private let targets = Lock<(real: [String], other: Set<String>)>(([], []))
        private let changed = ChangeSignal()

        var atReal: [String] { targets.withLock { $0.real } }
        var atOther: Set<String> { targets.withLock { $0.other } }

        func add(_ target: String, toReal isReal: Bool) {
            targets.withLock { targets in
                guard isReal else {
                    targets.other.insert(target)
                    return
                }
                targets.real.append(target)
            }
            changed.post()
        }

        func until(_ isSatisfied: (Arrivals) -> Bool) async throws {
            try await changed.until { isSatisfied(self) }
        }
    }

    /// The other server accepts, refuses, redirects or limits requests. It closes each connection, so that the next
    /// attempt looks the name up.
    private static func otherResponse(to target: String) -> ScriptedServer.Action {
        let number = Int(target.dropFirst()) ?? 0
        let responses: [(status: Int, header: ScriptedServer.Header, body: String)] = [
            (201, .init("Content-Type", "application/json"), #"{"ok":true}"#),
            (200, .init("Content-Type", "text/html"), "<html>Welcome"),
            (404, .init("Content-Type", "text/plain"), "not found"),
            (302, .init("Location", "http://other.example/"), ""),
            (401, .init("WWW-Authenticate", "Basic"), ""),
            (503, .init("Retry-After", "1"), ""),
            (429, .init("Retry-After", "315360000"), ""),
        ]
        let (status, header, body) = responses[number % responses.count]
        let headers = [header, .init("Connection", "close")]
        return .respond(status: status, headers: headers, body: Array(body.utf8))
    }

    private func service() async throws -> RunningService {
        names.set(Self.name, Self.otherAddress)
        let text = "[queue]\nbackoff-base = \"5ms\"\nbackoff-cap = \"50ms\"\n"
        let configuration = try directory.write(Array(text.utf8), to: "netwatch.toml")
        return try await RunningService(
            in: directory,
            namespace: testbed.near,
            resolvingBy: files,
            options: ["--config", configuration]
        )
    }

    /// Enqueues requests, each in a separate lane, so that each one is tried although others fail. With a single
    /// counted attempt, a response that counts as the server's would end a request.
    private func enqueue(_ count: Int, expecting expectation: String, in service: RunningService) async throws
    {
        let (socket, url) = (service.socket, "http://\(Self.name):\(real.port)")
        try await offPool {
            let client = try RawClient(socket)
            for number in 0..<count {
                let answer = try client.enqueue(
                    """
                    {"id":"\(number)","url":"\(url)/\(number)","method":"POST","body":"b","queue":"always",\
                    "lane":"\(number)","max_attempts":1,"expect":"\(expectation)"}
                    """
                )
                try #require((200..<300).contains(answer.status), "\(number): \(answer)")
            }
        }
    }

    @Test func `another server to which the name points neither delivers nor ends a request with a rule`()
        async throws
    {
        let service = try await service()
        try await enqueue(Self.rows, expecting: "header=X-Server=real", in: service)
        try await arrivals.until { $0.atOther.count == Self.rows }
        let counts = try await service.counts()
        #expect(counts["delivered", default: 0] == 0 && counts["dead", default: 0] == 0, "\(counts)")
        #expect(arrivals.atReal.isEmpty)
        names.set(Self.name, VethTestbed.farAddress)
        // A change of the file clears the service's name cache.
        try shell("echo '# changed' >>\(files.path(of: "resolv.conf"))")
        try await arrivals.until { $0.atReal.count >= Self.rows }
        try await service.until { try await service.counts()["delivered"] == Self.rows }
        #expect(arrivals.atReal.count == Self.rows && Set(arrivals.atReal).count == Self.rows)
        if CheckSize.current == .full {
            print("name to another server: \(Self.rows) requests, 0 delivered or dead")
        }
        try await service.stop()
    }

    @Test func `the check notices that another server delivers and ends requests without a rule`()
        async throws
    {
        let service = try await service()
        try await enqueue(14, expecting: "status=2xx", in: service)
        try await service.until {
            let counts = try await service.counts()
            return counts["delivered", default: 0] > 0 && counts["dead", default: 0] > 0
        }
        try await service.stop()
    }
}
