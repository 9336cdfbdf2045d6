internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

/// The service with sockets that the service manager opened, for its control API and its status page.
@Suite(.timeLimit(.minutes(5))) struct ServiceActivationTests {
    private func listen(on path: String) throws -> CInt {
        let listener = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let result = withUnixAddress(path) { address, length in bind(listener, address, length) }
        try #require(result == 0 && Glibc.listen(listener, 8) == 0)
        return listener
    }

    private static func listen(onPort port: UInt16) -> Result<CInt, SystemError> {
        Result { () throws(SystemError) in
            let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
            let listener = try systemCall("socket") { Glibc.socket(AF_INET, type, 0) }
            try systemCall("bind") {
                IPAddress("127.0.0.1")!.withSocketAddress(port: port) { bind(listener, $0, $1) }
            }
            try systemCall("listen") { Glibc.listen(listener, 8) }
            return listener
        }
    }

    private func serve(
        _ directory: ScratchDirectory,
        passing socket: CInt,
        at path: String,
        options: [String] = [],
        in namespace: NetworkNamespace? = nil
    ) throws -> Subprocess {
        try Subprocess(
            "/bin/sh",
            [
                "-c", "LISTEN_FDS=1 LISTEN_PID=$$ exec \"$@\"", "sh", Command.path, "serve", "--state-dir",
                directory.file("state"), "--socket", path,
            ] + options,
            passing: socket,
            in: namespace
        )
    }

    @Test func `a call that was made before the start is served, and the socket outlives the service`()
        async throws
    {
        let directory = try ScratchDirectory()
        let path = directory.file("socket")
        let socket = try listen(on: path)
        defer { close(socket) }
        let call = try Command.start(["queue", "list", "--socket", path])
        let service = try serve(directory, passing: socket, at: path)
        #expect(try await call.end() == .exited(0), "\(call.errors.values)")
        #expect(
            service.errors.values.contains { $0.contains("using the service manager's control socket") }
        )
        let status = try await Command.run("status", "--timeout", "30s", "--socket", path)
        #expect(status.output.contains { $0.contains("running, pid \(service.pid)") }, "\(status.output)")
        service.signal(SIGTERM)
        #expect(try await service.end() == .exited(0))
        #expect(access(path, F_OK) == 0)
    }

    @Test(.enabled(if: NetworkNamespace.isAvailable))
    func `a call of the status page's port that was made before the start is served`() async throws {
        let namespace = try NetworkNamespace()
        let socket = try namespace.run { Self.listen(onPort: 9317) }.get()
        defer { close(socket) }
        let address = "127.0.0.1:9317"
        let request = try Subprocess("/usr/bin/curl", ["-sS", "http://\(address)/healthz"], in: namespace)
        let directory = try ScratchDirectory()
        let service = try serve(
            directory,
            passing: socket,
            at: directory.file("socket"),
            options: ["--web", address],
            in: namespace
        )
        defer { service.signal(SIGTERM) }
        try await service.errors.wait { $0.contains { $0.hasSuffix("ready") } }
        #expect(try await request.outcome().output == ["ok"], "\(request.errors.values)")
        #expect(!service.errors.values.contains { $0.contains("does not use") })
    }

    @Test func `a socket with another path is reported and not used`() async throws {
        let directory = try ScratchDirectory()
        let socket = try listen(on: directory.file("other"))
        defer { close(socket) }
        let service = try serve(directory, passing: socket, at: directory.file("socket"))
        defer { service.signal(SIGTERM) }
        try await service.errors.wait { $0.contains { $0.hasSuffix("ready") } }
        let warning = "sockets of the service manager that the service does not use: 1"
        #expect(service.errors.values.contains { $0.hasSuffix(warning) })
    }
}
