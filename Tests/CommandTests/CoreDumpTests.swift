internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// A service that is ended by SIGABRT while requests and credentials are in its memory.
@Suite(.timeLimit(.minutes(5))) struct CoreDumpTests {
    /// The control: the kernel writes no core dump if the hard limit or `core_pattern` prevents it, or if the directory
    /// cannot be written. Then the test could not fail.
    @Test(
        .enabled("this machine writes no core dumps") { try await dumpsCore(options: { _ in [] }) }
    )
    func
        `a service with an encryption key writes no core dump, on a machine that writes one without the key`()
        async throws
    {
        let isWritten = try await Self.dumpsCore { directory in
            let key = try directory.write(Array(String(repeating: "1a", count: 32).utf8), to: "key")
            try #require(chmod(key, 0o600) == 0)
            return ["--encryption-key", key]
        }
        #expect(!isWritten)
    }

    /// Runs a service whose core dumps are not limited, and ends it with SIGABRT while it sends a request with a
    /// credential.
    ///
    /// - Returns: Whether the kernel wrote a core dump (`WCOREDUMP` of waitpid(2)).
    private static func dumpsCore(options: (ScratchDirectory) throws -> [String]) async throws -> Bool {
        let directory = try ScratchDirectory()
        let server = try ScriptedServer { _ in .stall(then: .close) }
        mkdir(directory.file("credentials"), 0o700)
        let text = "type: bearer\norigins: \(server.url)\nvalue: hush-token\n"
        let credential = try directory.write(Array(text.utf8), to: "credentials/api")
        try #require(chmod(credential, 0o600) == 0)
        let serve = [
            Command.path, "serve", "--state-dir", directory.file("state"), "--socket",
            directory.file("socket"),
            "--credentials", directory.file("credentials"),
        ]
        // The kernel writes the dump to the working directory, unless `core_pattern` names another place.
        let script = "ulimit -c unlimited; cd \(directory.path); exec \"$@\""
        let process = try Subprocess(
            "/bin/sh",
            ["-c", script, "sh"] + serve + options(directory),
            environment: ["SWIFT_BACKTRACE": "enable=no"]
        )
        try await process.errors.wait { $0.contains { $0.hasSuffix("ready") } }
        let send = ["send", server.url, "-d", "hush-body", "--credential", "api", "--queue", "always"]
        #expect(try await Command.start(send + ["--socket", directory.file("socket")]).end() == .exited(0))
        let request = await server.requests(atLeast: 1)[0]
        #expect(request.values(of: "Authorization") == ["Bearer hush-token"])
        process.signal(SIGABRT)
        #expect(try await process.end() == .signalled(SIGABRT))
        return process.dumpedCore
    }
}
