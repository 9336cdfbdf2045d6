internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// The memory of a service that has requests and credentials: whether a core dump or another process of the same user
/// can contain it.
@Suite(.timeLimit(.minutes(5))) struct CoreDumpTests {
    /// Runs a program without capabilities. With `CAP_SYS_PTRACE`, root could read the memory of every process.
    private static let unprivileged =
        geteuid() == 0 ? ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] : []

    /// The kernel decides by one attribute of a process whether it writes a core dump, and whether other processes of
    /// the same user may read the process's memory (`PR_SET_DUMPABLE`). The second effect does not depend on the
    /// settings of the machine. The service without a key shows that the memory is readable otherwise.
    @Test(arguments: [false, true])
    func `a process of the same user can read the memory of a service only if it has no encryption key`(
        hasKey: Bool
    ) async throws {
        let target = DumpableService(hasKey: hasKey)
        let service = try await target.start(with: Self.unprivileged)
        // The service needs its directory until then.
        defer { withExtendedLifetime(target) { service.signal(SIGKILL) } }
        let search = ["grep", "--count", "hush-value", "/proc/\(service.pid)/environ"]
        let outcome = try await Subprocess("/usr/bin/env", Self.unprivileged + search).outcome()
        #expect(outcome.ending == .exited(hasKey ? 2 : 0), "\(outcome.errors)")
        #expect(outcome.errors.contains { $0.hasSuffix("Permission denied") } == hasKey)
    }

    /// The control: the kernel writes no core dump if the hard limit or `core_pattern` prevents it, or if the directory
    /// cannot be written. Then the test could not fail.
    @Test(
        .enabled("this machine writes no core dumps; see /proc/sys/kernel/core_pattern and `ulimit -Hc`") {
            try await DumpableService(hasKey: false).dumpsCore()
        }
    )
    func
        `a service with an encryption key writes no core dump, on a machine that writes one without the key`()
        async throws
    {
        #expect(try await !DumpableService(hasKey: true).dumpsCore())
    }
}

/// A service with or without an encryption key.
private struct DumpableService {
    let hasKey: Bool
    private let directory = try! ScratchDirectory()

    init(hasKey: Bool) { self.hasKey = hasKey }

    /// Runs a service, and ends it with SIGABRT while it sends a request with a credential.
    ///
    /// - Returns: Whether the kernel wrote a core dump (`WCOREDUMP` of waitpid(2)).
    func dumpsCore() async throws -> Bool {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        makeCredentials()
        try write("type: bearer\norigins: \(server.url)\nvalue: hush-token\n", to: "credentials/api")
        let service = try await start()
        let send = ["send", server.url, "-d", "hush-body", "--credential", "api", "--queue", "always"]
        #expect(try await Command.start(send + ["--socket", directory.file("socket")]).end() == .exited(0))
        let request = await server.requests(atLeast: 1)[0]
        #expect(request.values(of: "Authorization") == ["Bearer hush-token"])
        service.signal(SIGABRT)
        #expect(try await service.end() == .signalled(SIGABRT))
        return service.dumpedCore
    }

    /// Starts a service whose core dumps are not limited and whose environment contains `hush-value`.
    func start(with prefix: [String] = []) async throws -> Subprocess {
        makeCredentials()
        var serve = [
            Command.path, "serve", "--state-dir", directory.file("state"), "--socket",
            directory.file("socket"), "--credentials", directory.file("credentials"),
        ]
        if hasKey {
            try write(String(repeating: "1a", count: 32), to: "key")
            serve += ["--encryption-key", directory.file("key")]
        }
        // The kernel writes the dump to the working directory, unless `core_pattern` names another place.
        let script = "ulimit -c unlimited; cd \(directory.path); exec \"$@\""
        let service = try Subprocess(
            "/bin/sh",
            ["-c", script, "sh"] + prefix + serve,
            environment: ["SWIFT_BACKTRACE": "enable=no", "NETWATCH_TEST": "hush-value"]
        )
        try await service.errors.wait { $0.contains { $0.hasSuffix("ready") } }
        return service
    }

    private func makeCredentials() { mkdir(directory.file("credentials"), 0o700) }

    private func write(_ text: String, to name: String) throws {
        let path = try directory.write(Array(text.utf8), to: name)
        try #require(chmod(path, 0o600) == 0)
    }
}
