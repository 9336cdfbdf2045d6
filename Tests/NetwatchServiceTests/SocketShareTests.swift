internal import Glibc
internal import Logging
internal import NIOHTTP1
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

/// Users who use up the limits of a server on a real socket, as each class of access that can connect. `nil` is root.
@Suite(.enabled(if: OtherUsers.areAvailable, "becoming another user needs root"), .timeLimit(.minutes(5)))
struct SocketShareTests {
    /// A server whose users are all in one class of access, or in none.
    private struct Fixture {
        let directory: ScratchDirectory
        let server: ControlServer
        let gate = HandlerGate()
        var path: String { directory.file("socket") }

        private static let group = SystemGroup(name: "users", id: 60_001)

        init(_ access: Access, _ adjust: (inout ControlServer.Limits) -> Void) throws {
            directory = try ScratchDirectory()
            try directory.admitEveryone()
            var policy = AccessPolicy()
            if access == .read { policy.readGroups = [Self.group] }
            if access == .submit { policy.submitGroups = [Self.group] }
            var limits = ControlServer.Limits()
            // These deadlines are too long to close a connection in a test.
            (limits.headerDeadline, limits.idleTimeout) = (.seconds(3600), .seconds(3600))
            (limits.responseDeadline, limits.lingerDeadline) = (.seconds(3600), .seconds(3600))
            adjust(&limits)
            server = try ControlServer(
                path: directory.file("socket"),
                permissions: access == .none ? .refused : policy.socketPermissions,
                router: ControlRouter(Self.routes(gate), access: AccessRules(policy: policy)),
                limits: limits,
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            )
        }

        /// A route of each class, whose requests hold their slots until the gate is opened, and others.
        private static func routes(_ gate: HandlerGate) -> [ControlRouter.Route] {
            ConnectionClass.allCases.map { connectionClass in
                .init(
                    .POST,
                    "/\(connectionClass.rawValue)",
                    access: .read,
                    classify: { _ in connectionClass }
                ) { _ in
                    await gate.pass()
                    return ControlResponse(status: .ok, body: [])
                }
            } + [
                .init(.GET, "/small", access: .read) { _ in ControlResponse(status: .ok, body: []) },
                .init(.GET, "/large", access: .read) { _ in
                    ControlResponse(status: .ok, body: Array(repeating: 120, count: 1 << 20))
                },
            ]
        }

        func client(_ user: UInt32?) throws -> RawClient { try RawClient(path, as: user) }
    }

    // MARK: Requests

    /// What is used up: the slots of a class, or the bytes of the bodies in it.
    private static let slots: [(ConnectionClass, sent: Int, length: Int)] = [
        (.call, 0, 0), (.send, 0, 0), (.wait, 0, 0), (.upload, 0, 40_000), (.wait, 40_000, 40_000),
    ]

    @Test(arguments: [Access.read, .submit], slots)
    func `each user gets a quarter, all users get seven eighths, and root gets the rest`(
        access: Access,
        slots: (ConnectionClass, sent: Int, length: Int)
    ) async throws {
        let (connectionClass, sent, length) = slots
        let fixture = try Fixture(access) {
            ($0.calls, $0.sends, $0.waits, $0.uploads) = (8, 8, sent > 0 ? 1000 : 8, sent > 0 ? 1000 : 8)
            $0.servedBytes = 8 * 40_000
        }
        let message = """
            POST /\(connectionClass.rawValue) HTTP/1.1\r
            Host: x\r
            \(connectionClass == .upload ? "Expect: 100-continue\r\n" : "")Content-Length: \(length)\r
            \r
            \(String(repeating: "x", count: sent))
            """
        var held: [HeldClient] = []
        for (user, share, owner) in [
            (60_001, 2, " of one user"), (60_002, 2, " of one user"), (60_003, 2, " of one user"),
            (60_004, 1, " of users without full access"), (nil, 1, ""),
        ] as [(UInt32?, Int, String)] {
            for _ in 0..<share {
                let client = try await offPool {
                    let client = try fixture.client(user)
                    try client.send(message)
                    if connectionClass == .upload { #expect(try client.response().status == 100) }
                    return HeldClient(client: client)
                }
                held.append(client)
                if connectionClass != .upload { await fixture.gate.isReached(by: held.count) }
            }
            let refused = try await offPool { try fixture.client(user).request(message) }
            #expect(refused.status == 503 && refused.problemCode == "busy")
            let words = " requests of the class `\(connectionClass.rawValue)`\(owner) are served at once"
            #expect(refused.body.contains(words), "\(refused.body)")
        }
        await fixture.gate.open()
        withExtendedLifetime(held) {}
    }

    /// A client that keeps its connection open, and that no other thread uses.
    private struct HeldClient: @unchecked Sendable {
        let client: RawClient
    }

    // MARK: Connections

    @Test(arguments: [Access.read, .submit])
    func `silent connections are closed to serve another user and root`(access: Access) async throws {
        let fixture = try Fixture(access) { ($0.arrivingConnections, $0.arrivalGrace) = (16, .zero) }
        try await offPool {
            // One user can have a quarter of these connections.
            let silent = try (0..<20).map { try fixture.client(60_001 + UInt32($0 / 4)) }
            for user in [60_009, nil] as [UInt32?] {
                #expect(try fixture.client(user).get("/small").status == 200)
            }
            try silent[0].waitUntilClosedByServer()
        }
    }

    enum Stage: CaseIterable {
        case idle, responding, respondingBytes, lingering

        /// Admits four connections in this stage, or the bytes of four responses.
        func limit(_ limits: inout ControlServer.Limits) {
            switch self {
            case .idle: limits.idleConnections = 4
            case .responding: limits.respondingConnections = 4
            case .respondingBytes: limits.respondingBytes = 9 << 19
            case .lingering: limits.lingeringConnections = 4
            }
        }

        /// Brings a connection into this stage.
        func enter(_ client: RawClient) throws -> RawClient {
            switch self {
            case .idle: #expect(try client.get("/small").status == 200)
            case .responding, .respondingBytes:
                try client.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
                // The first bytes show that the response is being sent.
                _ = try client.receiveMore()
            case .lingering: #expect(try client.get("/small", "Connection: close\r\n").status == 200)
            }
            return client
        }

        /// Expects that the server has not closed a connection in this stage.
        func expectOpen(_ client: RawClient) throws {
            switch self {
            case .idle: #expect(try client.get("/small").status == 200)
            case .responding, .respondingBytes: #expect(try client.response().body.utf8.count == 1 << 20)
            case .lingering: try client.send("x")
            }
        }
    }

    @Test(arguments: [Access.read, .submit], Stage.allCases)
    func `above the limit of a stage, the oldest connection of the user with most of them is closed`(
        access: Access,
        stage: Stage
    ) async throws {
        let fixture = try Fixture(access, stage.limit)
        try await offPool {
            let users: [UInt32?] = [nil, 60_001, 60_002, 60_002, 60_002]
            let clients = try users.map { try stage.enter(fixture.client($0)) }
            try clients[2].waitUntilClosedByServer()
            for index in [0, 1, 3, 4] { try stage.expectOpen(clients[index]) }
        }
    }

    @Test func `a user without access keeps few connections open, and root is served`() async throws {
        let fixture = try Fixture(.none) { $0.refusedConnections = 2 }
        try await offPool {
            let clients = try (0..<40).map { _ in try fixture.client(60_001) }
            for client in clients { #expect(try client.response().problemCode == "forbidden") }
            #expect(clients.filter { (try? $0.send("x")) != nil }.count <= 2)
            #expect(try fixture.client(nil).get("/small").status == 200)
        }
    }
}

extension RawClient {
    fileprivate func get(_ target: String, _ fields: String = "") throws -> RawResponse {
        try request("GET \(target) HTTP/1.1\r\nHost: x\r\n\(fields)\r\n")
    }
}
