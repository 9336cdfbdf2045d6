internal import Foundation
internal import Glibc
internal import Logging
internal import NIOHTTP1
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

@Suite(.enabled(if: OtherUser.isAvailable, OtherUser.obstacle))
struct PeerAccessTests {
    private static let submitters = SystemGroup(name: "submitters", id: 60_010)
    private static let readers = SystemGroup(name: "readers", id: 60_011)

    /// A server with a route for each level of access.
    private struct Fixture {
        let directory: ScratchDirectory
        let path: String
        let access: AccessRules
        let server: ControlServer

        /// - Parameter permissions: Who may connect. Default: every user, because the kernel refuses a list.
        init(_ policy: AccessPolicy, permissions: SocketPermissions = .refused) throws {
            access = AccessRules(policy: policy)
            directory = try ScratchDirectory()
            try directory.admitEveryone()
            path = directory.file("socket")
            server = try ControlServer(
                path: path,
                permissions: permissions,
                router: ControlRouter(
                    [
                        .init(.GET, "/none", access: .none) { .json(["\($0.caller.access)"]) },
                        .init(.GET, "/read", access: .read) { .json(["\($0.caller.access)"]) },
                        .init(.POST, "/submit", access: .submit) { .json(["\($0.caller.access)"]) },
                        .init(.POST, "/full", access: .full) { .json(["\($0.caller.access)"]) },
                    ],
                    access: access
                ),
                logger: Logger(label: "test")
            )
        }

        /// The statuses of the four routes for a user.
        func statuses(_ user: OtherUser) async throws -> [UInt] {
            let read = try await [user.curl(path, "/none"), user.curl(path, "/read")]
            let written = try await [
                user.curl(path, "/submit", "-d", "x"), user.curl(path, "/full", "-d", "x"),
            ]
            return (read + written).map(\.status)
        }
    }

    private static var policy: AccessPolicy {
        var policy = AccessPolicy(owner: 60_000)
        (policy.submitGroups, policy.readGroups) = ([submitters], [readers])
        return policy
    }

    @Test func `root and the user of the service may do everything`() async throws {
        let fixture = try Fixture(Self.policy)
        #expect(try await fixture.statuses(OtherUser(uid: 0)) == [200, 200, 200, 200])
        #expect(try await fixture.statuses(OtherUser(uid: 60_000)) == [200, 200, 200, 200])
    }

    @Test func `the groups of a process decide what it may do`() async throws {
        let fixture = try Fixture(Self.policy)
        let submitter = [200, 200, 200, 403] as [UInt]
        let reader = [200, 200, 403, 403] as [UInt]
        #expect(try await fixture.statuses(OtherUser(uid: 60_002, gid: 60_010)) == submitter)
        #expect(try await fixture.statuses(OtherUser(uid: 60_002, groups: [60_003, 60_010])) == submitter)
        #expect(try await fixture.statuses(OtherUser(uid: 60_002, groups: [60_011, 60_010])) == submitter)
        #expect(try await fixture.statuses(OtherUser(uid: 60_002, gid: 60_011)) == reader)
        #expect(try await fixture.statuses(OtherUser(uid: 60_002, groups: [60_011])) == reader)
        #expect(try await fixture.statuses(OtherUser(uid: 60_002, groups: [60_003])) == [403, 403, 403, 403])
    }

    @Test func `a replaced policy decides about the next request`() async throws {
        let fixture = try Fixture(AccessPolicy(owner: 60_000))
        let member = OtherUser(uid: 60_002, gid: 60_010)
        #expect(try await fixture.statuses(member) == [403, 403, 403, 403])
        fixture.access.replace(policy: Self.policy, quota: UserQuota())
        #expect(try await fixture.statuses(member) == [200, 200, 200, 403])
    }

    @Test func `a refusal says what must be changed`() async throws {
        let fixture = try Fixture(Self.policy)
        let connecting = try await OtherUser(uid: 60_002).curl(fixture.path, "/none")
        #expect(connecting.code == "forbidden")
        #expect(
            connecting.detail
                == "this user (60002) may not connect to the service; add this user to the group `submitters` or "
                + "`readers` (`access.submit-groups` or `access.read-groups`), and log in again"
        )
        let reader = OtherUser(uid: 60_002, gid: 60_011)
        let submitting = try await reader.curl(fixture.path, "/submit", "-d", "x")
        #expect(
            submitting.detail
                == "this user (60002) may not submit or edit requests; add this user to the group "
                + "`submitters` (`access.submit-groups`), and log in again"
        )
        let editing = try await reader.curl(fixture.path, "/full", "-d", "x")
        #expect(editing.detail.hasSuffix("; only root and the user of the service may"))
    }

    @Test func `without groups, a refusal names the key of the configuration`() async throws {
        let fixture = try Fixture(AccessPolicy(owner: 60_000))
        let submitting = try await OtherUser(uid: 60_002).curl(fixture.path, "/submit", "-d", "x")
        #expect(
            submitting.detail.hasSuffix(
                "add a group of this user to `access.submit-groups` or `access.read-groups` in the configuration of the "
                    + "service, and reload the service"
            )
        )
    }

    @Test func `a long body of a refused request is not read`() async throws {
        let fixture = try Fixture(Self.policy)
        // The body never ends, so only a response before its end can be received.
        for user in [OtherUser(uid: 60_002), OtherUser(uid: 60_002, gid: 60_011)] {
            let response = try await user.curl(
                fixture.path,
                "/submit",
                "-X",
                "POST",
                "-T",
                "/dev/zero",
                "-H",
                "Transfer-Encoding: chunked"
            )
            #expect(response.status == 403)
        }
    }

    @Test func `only the owner of the socket, root and the members of its groups can connect`() async throws {
        var policy = AccessPolicy()
        (policy.submitGroups, policy.readGroups) = ([Self.submitters], [Self.readers])
        let fixture = try Fixture(policy, permissions: policy.socketPermissions)
        #expect(try await fixture.statuses(OtherUser(uid: 0)) == [200, 200, 200, 200])
        let member = OtherUser(uid: 60_002, groups: [60_003, 60_010])
        #expect(try await fixture.statuses(member) == [200, 200, 200, 403])
        // Status 0 means that there was no response. A member of the group that owns the file has no access either.
        for stranger in [OtherUser(uid: 60_002, groups: [60_003]), OtherUser(uid: 60_002, gid: getegid())] {
            #expect(try await fixture.statuses(stranger) == [0, 0, 0, 0])
        }
        let readers = SocketPermissions(groups: [Self.readers])
        try fixture.server.admit(readers, userConnections: 64)
        #expect(try await fixture.statuses(member) == [0, 0, 0, 0])
        #expect(try await fixture.statuses(OtherUser(uid: 60_002, gid: 60_011)) == [200, 200, 403, 403])
    }
}

@Suite struct AccessPolicyTests {
    @Test func `every user may read over TCP`() {
        #expect(AccessPolicy(owner: 1).caller(nil) == Caller(user: nil, access: .read))
    }

    @Test func `only the submitter and full access own a request`() {
        let submitter = Caller(user: 7, access: .submit)
        #expect(submitter.owns(7) && !submitter.owns(8) && !submitter.owns(nil))
        #expect(Caller(user: 0, access: .full).owns(8) && Caller(user: 0, access: .full).owns(nil))
        #expect(!Caller(user: nil, access: .read).owns(nil))
    }

    /// 65534 stands for all users and groups without an id in the user namespace of the service.
    @Test func `a user whom the kernel does not report has no access and owns nothing`() {
        var policy = AccessPolicy(owner: 60_000, unmapped: UnmappedIDs(user: 65_534, group: 65_533))
        policy.submitGroups = [SystemGroup(name: "a", id: 60_010), SystemGroup(name: "b", id: 65_533)]
        let unknown = policy.caller(PeerCredentials(pid: 1, uid: 65_534, gid: 60_010))
        #expect(unknown == Caller(user: nil, access: .none) && !unknown.owns(65_534))
        #expect(
            policy.refusal(of: unknown, without: .submit)
                == "this user may not submit or edit requests; the id 65534 also stands for users without an id in the "
                + "user namespace of the service, so it has no access"
        )
        let stranger = PeerCredentials(pid: 1, uid: 7, gid: 65_533, groups: [65_533])
        #expect(policy.caller(stranger) == Caller(user: 7, access: .none))
        #expect(policy.caller(PeerCredentials(pid: 1, uid: 7, gid: 60_010)).access == .submit)
    }

    @Test func `a service of the unmapped user knows itself only without groups`() {
        var policy = AccessPolicy(owner: 65_534, unmapped: UnmappedIDs(user: 65_534, group: 65_534))
        let peer = PeerCredentials(pid: 1, uid: 65_534, gid: 65_534)
        #expect(policy.caller(peer) == Caller(user: 65_534, access: .full))
        policy.readGroups = [SystemGroup(name: "a", id: 60_010)]
        #expect(policy.caller(peer) == Caller(user: nil, access: .none))
    }

    @Test func `groups are looked up by name`() throws {
        #expect(try SystemGroup(named: "root") == SystemGroup(name: "root", id: 0))
        #expect(try SystemGroup(named: "no-such-group") == nil)
    }

    @Test func `an interrupted look-up of a group is repeated`() throws {
        var calls = 0
        let root = try SystemGroup(named: "root") { name, entry, buffer, size, found in
            calls += 1
            return calls == 1 ? EINTR : getgrnam_r(name, entry, buffer, size, found)
        }
        #expect(root?.id == 0 && calls == 2)
    }

    @Test(arguments: [0, ENOENT, ESRCH])
    func `a group that the database does not contain is unknown`(error: CInt) throws {
        #expect(try SystemGroup(named: "root", reading: { _, _, _, _, _ in error }) == nil)
    }

    /// `ERANGE` is the result for an entry that is longer than the longest buffer.
    @Test(arguments: [EIO, EMFILE, ENOMEM, EAGAIN, EBADF, EPERM, ERANGE])
    func `a database that cannot be read is an error`(error: CInt) {
        let thrown = #expect(throws: SystemError.self) {
            try SystemGroup(named: "root", reading: { _, _, _, _, _ in error })
        }
        #expect(thrown?.errno == error)
    }
}
