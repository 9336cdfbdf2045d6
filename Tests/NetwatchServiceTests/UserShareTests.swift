internal import Glibc
internal import Logging
internal import NIOHTTP1
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchService

/// Slow clients of one user, on a real socket.
@Suite(.enabled(if: OtherUser.isAvailable, OtherUser.obstacle), .timeLimit(.minutes(5)))
struct UserShareTests {
    /// Starts an upload whose body never begins, and waits until the service reads it or refuses it. Returns the status.
    private func slowUpload(_ user: OtherUser, _ socket: String, _ input: CInt) async throws -> String {
        let options = ["-v", "-X", "POST", "-T", "-", "-H", "Expect: 100-continue"]
        let process = try user.start(socket, "/", options, input: input)
        try await process.errors.wait { $0.contains { $0.hasPrefix("< HTTP/1.1 ") } }
        return process.errors.values.first { $0.hasPrefix("< HTTP/1.1 ") }.map {
            String($0.dropFirst(11).prefix(3))
        } ?? ""
    }

    @Test func `slow uploads of one user leave room for others, and for small requests of the same user`()
        async throws
    {
        let directory = try ScratchDirectory()
        try directory.admitEveryone()
        let path = directory.file("socket")
        var limits = ControlServer.Limits()
        (limits.uploads, limits.headerDeadline, limits.bodyDeadline) = (8, .seconds(3600), .seconds(3600))
        var policy = AccessPolicy()
        policy.submitGroups = [SystemGroup(name: "users", id: 60_001)]
        let server = try ControlServer(
            path: path,
            permissions: policy.socketPermissions,
            router: ControlRouter(
                [.init(.POST, "/", access: .submit) { .json(["\($0.body.count)"]) }],
                access: AccessRules(policy: policy)
            ),
            limits: limits,
            logger: Logger(label: "test")
        )
        var ends: [CInt] = [-1, -1]
        let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        try systemCall("socketpair") { socketpair(AF_UNIX, type, 0, &ends) }
        let input = FileDescriptor(owning: ends[0])
        let writer = FileDescriptor(owning: ends[1])
        let (alice, bob) = (OtherUser(uid: 60_002), OtherUser(uid: 60_003))
        var statuses: [String] = []
        for _ in 0..<3 { statuses.append(try await slowUpload(alice, path, input.rawValue)) }
        #expect(statuses == ["100", "100", "503"])
        let large = String(repeating: "x", count: 40_000)
        let refused = try await alice.curl(path, "/", "-d", large)
        #expect(refused.status == 503 && refused.members["limit"] as? Int == 2, "\(refused.members)")
        #expect(try await alice.curl(path, "/", "-d", "x").status == 200)
        #expect(try await bob.curl(path, "/", "-d", large).status == 200)
        #expect(try await OtherUser(uid: 0).curl(path, "/", "-d", large).status == 200)
        // The end of their input ends the uploads.
        shutdown(writer.rawValue, CInt(SHUT_RDWR))
        withExtendedLifetime((server, directory)) {}
    }
}
