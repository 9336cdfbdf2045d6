internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchService

@Suite struct SocketPermissionsTests {
    private let directory = try! ScratchDirectory()
    private var path: String { directory.file("socket") }

    /// Creates a file in place of the socket, because both have the same permissions.
    private func makeFile(_ mode: mode_t = 0o666) throws {
        try directory.write([], to: "socket")
        try #require(chmod(path, mode) == 0)
    }

    private func mode() throws -> mode_t {
        var status = stat()
        try #require(lstat(path, &status) == 0)
        return status.st_mode & 0o777
    }

    private var admission: SocketAdmission? { SocketAdmission(of: Array(path.utf8)) }

    @Test func `groups become entries of an access control list, which later permissions remove`() throws {
        try makeFile()
        let (first, second) = (SystemGroup(id: 60_010), SystemGroup(id: 60_011))
        let again = SystemGroup(name: "again", id: 60_010)
        let applied = try SocketPermissions(groups: [second, first, again]).apply(to: path)
        #expect(applied == .groups([first, second]) && admission == applied && first.name == "60010")
        // The group bits of the mode are the mask of the list. The owning group has no permission.
        #expect(try mode() == 0o660)
        let list = try AccessControlList(of: path.utf8CString.map(\.self))
        #expect(
            list?.entries == [
                .init(tag: .owner, permissions: 6), .init(tag: .owningGroup, permissions: 0),
                .init(tag: .group, permissions: 6, id: 60_010),
                .init(tag: .group, permissions: 6, id: 60_011),
                .init(tag: .mask, permissions: 6), .init(tag: .others, permissions: 0),
            ]
        )
        #expect(try SocketPermissions().apply(to: path) == .owner && admission == .owner)
        #expect(try mode() == 0o600 && AccessControlList(of: path.utf8CString.map(\.self)) == nil)
    }

    @Test func `a refused list admits every user, and none of its groups remains`() throws {
        try makeFile(0o600)
        _ = try SocketPermissions(groups: [SystemGroup(id: 60_010)]).apply(to: path)
        guard case .everyone(let error?) = try SocketPermissions.refused.apply(to: path) else {
            Issue.record("the kernel accepts a list of more than 64 KiB")
            return
        }
        #expect(error.errno == E2BIG && error.call == "setxattr system.posix_acl_access \(path)")
        #expect(try mode() == 0o666 && admission == .everyone(nil))
        #expect(try AccessControlList(of: path.utf8CString.map(\.self)) == nil)
    }

    @Test func `the mode decides about a file without a list`() throws {
        try makeFile(0o660)
        #expect(admission == .groups([SystemGroup(id: getegid())]))
        #expect(chmod(path, 0o640) == 0 && admission == .owner)
        #expect(SocketAdmission(of: Array(directory.file("missing").utf8)) == nil)
    }

    @Test func `the mode cannot be changed without the file`() {
        let missing = SystemError(call: "chmod \(path)", errno: ENOENT)
        for permissions in [SocketPermissions(), SocketPermissions(groups: [SystemGroup(id: 60_010)])] {
            #expect(throws: missing) { try permissions.apply(to: path) }
        }
    }

    @Test func `a list is parsed as the kernel writes it, and nothing else is`() {
        // getfacl(1): user::rw-, group::---, group:7001:rw-, mask::rw-, other::---
        let bytes: [UInt8] = [
            2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 4, 0, 0, 0, 255, 255, 255, 255, 8, 0, 6, 0, 0x59,
            0x1b,
            0, 0, 16, 0, 6, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255,
        ]
        let list = AccessControlList(bytes: bytes)
        #expect(list?.entries[2] == .init(tag: .group, permissions: 6, id: 7001) && list?.bytes == bytes)
        var others = [[], [2, 0, 0], Array(bytes.dropLast()), bytes, bytes]
        others[3][0] = 3
        others[4][4] = 64
        for bytes in others { #expect(AccessControlList(bytes: bytes) == nil) }
    }
}
