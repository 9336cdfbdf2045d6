internal import Foundation
internal import Glibc
internal import Logging
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchService

@Suite struct ControlSocketTests {
    private func listen(on path: String) throws -> FileDescriptor {
        let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        let listener = FileDescriptor(owning: try systemCall("socket") { socket(AF_UNIX, type, 0) })
        _ = try withUnixAddress(path) { address, length in
            try systemCall("bind") { bind(listener.rawValue, address, length) }
        }
        try systemCall("listen") { Glibc.listen(listener.rawValue, 8) }
        return listener
    }

    private func expectServing(_ fixture: ControlFixture) async throws {
        let status = try await offPool {
            try fixture.client().request("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n").status
        }
        #expect(status == 200)
    }

    @Test func `a dead socket file is replaced`() async throws {
        let directory = try ScratchDirectory()
        let path = directory.file("control.sock")
        do {
            let dead = try listen(on: path)
            // A program that another test starts now has a copy of the listener until its exec(2). The shutdown makes
            // the copy refuse connections, too.
            shutdown(dead.rawValue, CInt(SHUT_RDWR))
        }
        #expect(access(path, F_OK) == 0)
        try await expectServing(ControlFixture(directory: directory))
    }

    @Test func `a socket of the service manager is used, and outlives the server`() async throws {
        let directory = try ScratchDirectory()
        let path = directory.file("control.sock")
        let manager = try listen(on: path)
        #expect(chmod(path, 0o666) == 0)
        let inherited = fcntl(manager.rawValue, F_DUPFD_CLOEXEC, 0)
        let fixture = try ControlFixture(directory: directory, inheriting: inherited)
        #expect(SocketAdmission(of: Array(path.utf8)) == .owner)
        try await expectServing(fixture)
        #expect(access(path + ".lock", F_OK) == -1)
        await fixture.server.stop()
        let waiting = try RawClient(path)
        var pending = pollfd(fd: manager.rawValue, events: Int16(POLLIN), revents: 0)
        #expect(poll(&pending, 1, 0) == 1, "the service manager has the connection")
        withExtendedLifetime(waiting) {}
    }

    @Test func `a second server is rejected, naming the first one's process`() async throws {
        let first = try ControlFixture()
        let refusal = ControlSocketError.inUse(path: first.path, pid: getpid())
        #expect(throws: refusal) { try ControlFixture(directory: first.directory) }
        #expect("\(refusal)" == "`\(first.path)` is already served by process \(getpid())")
        try await expectServing(first)
    }

    @Test func `a server that holds the lock but has no socket yet is not replaced`() throws {
        let directory = try ScratchDirectory()
        let path = directory.file("control.sock")
        try Data("4711\n".utf8).write(to: URL(fileURLWithPath: path + ".lock"))
        let lock = try FileDescriptor.opening(path + ".lock")
        try #require(flock(lock.rawValue, LOCK_EX | LOCK_NB) == 0)
        #expect(throws: ControlSocketError.inUse(path: path, pid: 4711)) {
            try ControlFixture(directory: directory)
        }
        #expect(access(path, F_OK) == -1)
    }

    @Test func `a server that does not use the lock is not replaced`() throws {
        let directory = try ScratchDirectory()
        let path = directory.file("control.sock")
        let foreign = try listen(on: path)
        #expect(throws: ControlSocketError.inUse(path: path, pid: getpid())) {
            try ControlFixture(directory: directory)
        }
        var pending = pollfd(fd: foreign.rawValue, events: Int16(POLLIN), revents: 0)
        #expect(access(path, F_OK) == 0)
        #expect(poll(&pending, 1, 0) == 1, "the probe reached the server, so the path was not replaced")
    }

    @Test func `a server with a full backlog is not replaced`() throws {
        let directory = try ScratchDirectory()
        let path = directory.file("control.sock")
        let foreign = try listen(on: path)
        #expect(Glibc.listen(foreign.rawValue, 0) == 0)
        let waiting = try RawClient(path)
        #expect(throws: ControlSocketError.inUse(path: path, pid: nil)) {
            try ControlFixture(directory: directory)
        }
        withExtendedLifetime(waiting) {}
    }

    @Test func `a regular file, a directory and a link at the path are not removed`() throws {
        let directory = try ScratchDirectory()
        let (file, folder) = (directory.file("file"), directory.file("folder"))
        let link = directory.file("link")
        try Data("precious".utf8).write(to: URL(fileURLWithPath: file))
        try #require(mkdir(folder, 0o700) == 0 && symlink(file, link) == 0)
        for path in [file, folder, link] {
            #expect(throws: ControlSocketError.notASocket(path: path)) { try ControlFixture(path: path) }
        }
        #expect(try String(contentsOfFile: link, encoding: .utf8) == "precious")
    }

    @Test func `a too long path is rejected with the limit`() async throws {
        let directory = try ScratchDirectory()
        let padding = 107 - directory.file("").utf8.count
        let longest = directory.file(String(repeating: "a", count: padding))
        try await expectServing(ControlFixture(directory: directory, path: longest))
        for path in [longest + "a", "", "/tmp/a\0b"] {
            let refusal = ControlSocketError.unusablePath(path: path, limit: 107)
            #expect(throws: refusal) { try ControlFixture(path: path) }
            #expect("\(refusal)".contains("1 to 107 bytes"))
        }
    }

    @Test func `a missing directory is reported`() {
        let path = "/nowhere/control.sock"
        let missing = SystemError(call: "open \(path).lock", errno: ENOENT)
        #expect(throws: ControlSocketError.system(missing)) { try ControlFixture(path: path) }
    }

    @Test func `without groups, only the owner may connect`() throws {
        let fixture = try ControlFixture()
        var status = stat()
        #expect(lstat(fixture.path, &status) == 0)
        #expect(status.st_mode == S_IFSOCK | 0o600)
        #expect(
            fixture.log.values == ["only root and the user of the service can connect to the control socket"]
        )
    }

    @Test func `a stop removes the socket, and the next server can start`() async throws {
        let first = try ControlFixture()
        await first.server.stop()
        #expect(access(first.path, F_OK) == -1)
        let second = try ControlFixture(directory: first.directory)
        await first.server.stop()
        try await expectServing(second)
    }

    @Test func `a stop does not remove a file that replaced the socket`() async throws {
        let fixture = try ControlFixture()
        unlink(fixture.path)
        try Data("precious".utf8).write(to: URL(fileURLWithPath: fixture.path))
        await fixture.server.stop()
        #expect(try String(contentsOfFile: fixture.path, encoding: .utf8) == "precious")
    }

    private func expectBoundAgain(_ fixture: ControlFixture) async throws {
        try await fixture.log.wait { $0.contains("the control socket is bound again") }
        try await expectServing(fixture)
    }

    @Test(.timeLimit(.minutes(5))) func `a socket that was removed is bound again`() async throws {
        let fixture = try ControlFixture()
        let hello = "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"
        let kept = KeptClient(client: try fixture.client())
        #expect(try await offPool { try kept.client.request(hello).status } == 200)
        #expect(unlink(fixture.path) == 0)
        try await expectBoundAgain(fixture)
        let status = try await offPool { try kept.client.request(hello).status }
        #expect(status == 200, "an earlier connection is still served")
        #expect(access(fixture.path + ".lock", F_OK) == 0)
        await fixture.server.stop()
        #expect(access(fixture.path, F_OK) == -1)
    }

    @Test(.timeLimit(.minutes(5)))
    func `the permissions can be changed, and are kept when the socket is bound again`() async throws {
        let fixture = try ControlFixture()
        let admission = { SocketAdmission(of: Array(fixture.path.utf8)) }
        let root = SystemGroup(name: "root", id: 0)
        try fixture.server.admit(SocketPermissions(groups: [root]), userConnections: 64)
        #expect(admission() == .groups([root]))
        #expect(unlink(fixture.path) == 0)
        try await expectBoundAgain(fixture)
        #expect(admission() == .groups([root]))
        try fixture.server.admit(.refused, userConnections: 64)
        #expect(admission() == .everyone(nil))
        try fixture.server.admit(SocketPermissions(), userConnections: 64)
        #expect(admission() == .owner)
        let lines = fixture.log.values.filter { $0.contains("can connect to the control socket") }
        #expect(
            lines.count == 4
                && lines[1] == "members of these groups can connect to the control socket: `root`",
            "\(lines)"
        )
        let refusal = "because it cannot have an access control list: setxattr system.posix_acl_access "
        #expect(lines[2].contains(refusal) && lines[2].hasSuffix("Argument list too long"), "\(lines)")
    }

    @Test(.timeLimit(.minutes(5)))
    func `a socket whose directory was removed is bound again`() async throws {
        let scratch = try ScratchDirectory()
        let directory = scratch.file("run")
        let path = directory + "/control.sock"
        let fixture = try ControlFixture(
            directory: scratch,
            path: path,
            prepare: { _ = mkdir(directory, 0o755) }
        )
        try FileManager.default.removeItem(atPath: directory)
        try await expectBoundAgain(fixture)
    }

    @Test(.timeLimit(.minutes(5)))
    func `a path taken by another server is bound again when it is free`() async throws {
        let fixture = try ControlFixture()
        #expect(unlink(fixture.path) == 0)
        do {
            let foreign = try listen(on: fixture.path)
            let descriptor = foreign.rawValue
            let isProbed = try await offPool {
                var pending = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                return poll(&pending, 1, 20_000) == 1
            }
            #expect(isProbed, "the server probes the path")
            #expect(access(fixture.path, F_OK) == 0, "the server does not remove the path")
            withExtendedLifetime(foreign) {}
        }
        try await expectBoundAgain(fixture)
    }

    @Test(.timeLimit(.minutes(5)))
    func `a failed registration of the socket is retried`() async throws {
        let scratch = try ScratchDirectory()
        let path = scratch.file("control.sock")
        let registrations = Recorder<Bool>()
        let served = Recorder<CInt>()
        var dependencies = ControlListener.Dependencies(
            open: { (permissions) throws(ControlSocketError) in
                .unix(try ControlSocket.claiming(path, for: permissions))
            },
            acceptDelay: { nil },
            onConnection: { connection in
                close(connection.descriptor)
                served.record(connection.descriptor)
                return true
            },
            onTick: {},
            logger: Logger(label: "test")
        )
        let register = dependencies.register
        dependencies.register = { loop, descriptor, body throws(SystemError) in
            registrations.record(true)
            if registrations.values.count == 2 { throw SystemError(call: "epoll_ctl", errno: ENOMEM) }
            return try register(loop, descriptor, body)
        }
        let listener = try ControlListener(dependencies)
        #expect(unlink(path) == 0)
        try await registrations.wait { $0.count >= 3 }
        try await offPool { _ = try RawClient(path) }
        try await served.wait { !$0.isEmpty }
        listener.stop()
    }

    /// Without batches, a user who connects in a loop fills the backlog, because each connection needs a turn of the loop.
    @Test func `connections that wait are accepted in one turn of the loop`() async throws {
        let scratch = try ScratchDirectory()
        let path = scratch.file("control.sock")
        let turns = Recorder<@Sendable () -> Void>()
        let accepted = Recorder<PeerCredentials?>()
        var dependencies = ControlListener.Dependencies(
            open: { (permissions) throws(ControlSocketError) in
                .unix(try ControlSocket.claiming(path, for: permissions))
            },
            acceptDelay: { nil },
            onConnection: { connection in
                close(connection.descriptor)
                accepted.record(connection.peer)
                return true
            },
            onTick: {},
            logger: Logger(label: "test")
        )
        // A descriptor that is never ready. The test takes the turn.
        var ends: [CInt] = [-1, -1]
        try systemCall("socketpair") {
            socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends)
        }
        let idle = FileDescriptor(owning: ends[0])
        let peer = FileDescriptor(owning: ends[1])
        let descriptor = idle.rawValue
        dependencies.register = { loop, _, body throws(SystemError) in
            turns.record(body)
            return try loop.register(descriptor, for: .read) { _ in }
        }
        let listener = try ControlListener(dependencies)
        let clients = try (0..<20).map { _ in try RawClient(path) }
        turns.values[0]()
        #expect(accepted.values.count == 20 && accepted.values.allSatisfy { $0?.uid == geteuid() })
        listener.stop()
        withExtendedLifetime(clients) {}
        withExtendedLifetime(idle) {}
        withExtendedLifetime(peer) {}
    }

    @Test func `child processes do not inherit the lock, the listener or a connection`() async throws {
        let fixture = try ControlFixture()
        try await offPool {
            let client = try fixture.client()
            #expect(try client.request("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n").status == 200)
            let sockets = openDescriptors().filter { boundPath(of: $0) == fixture.path }
            #expect(sockets.count == 2, "the listener and the server's end of the connection")
            let lock = openDescriptors().filter { target(of: $0) == fixture.path + ".lock" }
            #expect(lock.count == 1)
            for descriptor in sockets + lock { #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0) }
            withExtendedLifetime(client) {}
        }
    }
}

/// A client that only one thread at a time uses.
private struct KeptClient: @unchecked Sendable {
    let client: RawClient
}

private func openDescriptors() -> [CInt] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    return names.compactMap { CInt($0) }
}

private func target(of descriptor: CInt) -> String? {
    try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)")
}

/// The path that a Unix socket is bound to. An accepted connection has the path of its listener.
private func boundPath(of descriptor: CInt) -> String? {
    var address = sockaddr_un()
    var length = socklen_t(MemoryLayout<sockaddr_un>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
    }
    guard result == 0, address.sun_family == AF_UNIX, length > 2 else { return nil }
    let bytes = withUnsafeBytes(of: address.sun_path) { Array($0.prefix { $0 != 0 }) }
    return String(decoding: bytes, as: UTF8.self)
}
