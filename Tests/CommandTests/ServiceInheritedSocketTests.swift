internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// The service with a netlink socket that the service manager opened.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")")
)
struct ServiceInheritedSocketTests {
    /// Returns the service's log until it was ready, and whether the service joined multicast groups on the inherited
    /// socket.
    private func serve(pid: String) async throws -> (log: [String], isListenedOn: Bool) {
        let namespace = try NetworkNamespace()
        let socket = namespace.run {
            Glibc.socket(AF_NETLINK, CInt(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue), 0)
        }
        defer { close(socket) }
        let directory = try ScratchDirectory()
        let paths = ["--state-dir", directory.file("state"), "--socket", directory.file("socket")]
        let service = try Subprocess(
            "/bin/sh",
            ["-c", "LISTEN_FDS=1 LISTEN_PID=\(pid) exec \"$@\"", "sh", Command.path, "serve"] + paths,
            passing: socket,
            in: namespace
        )
        defer { service.signal(SIGTERM) }
        try await service.errors.wait { $0.contains { $0.hasSuffix("ready") } }
        // Group membership belongs to the socket, so our descriptor shows the groups that the service joined.
        var groups: [UInt32] = [0, 0]
        var length = socklen_t(8)
        let listMemberships: CInt = 9
        getsockopt(socket, 270, listMemberships, &groups, &length)
        return (service.errors.values, groups[0] != 0)
    }

    @Test func `an inherited netlink socket is used`() async throws {
        let (log, isListenedOn) = try await serve(pid: "$$")
        #expect(log.contains { $0.contains("service manager's netlink socket") })
        #expect(isListenedOn)
    }

    @Test func `inherited sockets of another process are ignored`() async throws {
        let (log, isListenedOn) = try await serve(pid: "1")
        #expect(!log.contains { $0.contains("netlink socket") })
        #expect(!isListenedOn)
    }
}
