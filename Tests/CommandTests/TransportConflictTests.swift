internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// Commands whose libcurl uses another major version of OpenSSL than the one that netwatch is linked with. A preloaded
/// library reports this version to the command.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: SystemCompiler.isInstalled, "needs the C compiler `cc`")
)
struct TransportConflictTests {
    private static let source = """
        #define _GNU_SOURCE
        #include <curl/curl.h>
        #include <dlfcn.h>

        curl_version_info_data *curl_version_info(CURLversion version) {
            static curl_version_info_data info;
            curl_version_info_data *(*next)(CURLversion) = dlsym(RTLD_NEXT, "curl_version_info");
            info = *next(version);
            info.ssl_version = "OpenSSL/1.1.1w";
            return &info;
        }

        """

    private static let conflict = "uses OpenSSL 1.1.1w, but this program is linked with OpenSSL 3"
    private static let hint =
        "hint: install a libcurl and a netwatch that use the same major version of OpenSSL"

    private let directory = try! ScratchDirectory()

    private func run(_ arguments: [String]) async throws -> Subprocess.Outcome {
        let library = try await SystemCompiler.library(Self.source, in: directory)
        return try await Command.start(arguments, environment: ["LD_PRELOAD": library]).outcome()
    }

    @Test func `the service does not start, and creates no files`() async throws {
        let (socket, state) = (directory.file("socket"), directory.file("state"))
        let outcome = try await run(["serve", "--socket", socket, "--state-dir", state])
        #expect(outcome.ending == .exited(78))
        #expect(outcome.errors.first?.contains(Self.conflict) == true, "\(outcome.errors)")
        #expect(outcome.errors.last == Self.hint)
        for path in [socket, state] { #expect(!FileManager.default.fileExists(atPath: path)) }
    }

    @Test func `commands that send requests end before they connect`() async throws {
        let server = try ScriptedServer()
        let socket = directory.file("socket")
        let service = try ScriptedServer(unixPath: socket)
        let commands = [
            ["send", "--queue", "never", server.url], ["send", server.url, "--socket", socket],
            ["host", "127.0.0.1", "--once", "--probe", "http:\(server.port)"],
            ["wait", "--for", "verified", "--check-url", server.url], ["history", "--socket", socket],
        ]
        for command in commands {
            let outcome = try await run(command)
            #expect(outcome.ending == .exited(78), "\(command)")
            #expect(outcome.errors.first?.contains(Self.conflict) == true, "\(command): \(outcome.errors)")
        }
        #expect(server.connectionCount == 0 && service.connectionCount == 0)
    }

    @Test func `commands that send no requests work`() async throws {
        #expect(try await run(["host", "127.0.0.1", "--once"]).ending == .exited(0))
        let server = try ScriptedServer()
        let probe = ["host", "127.0.0.1", "--once", "--probe", "tcp:\(server.port)"]
        #expect(try await run(probe).ending == .exited(0))
        #expect(await server.peers(atLeast: 1).count == 1)
    }

    @Test func `doctor reports the problem`() async throws {
        let options = ["--socket", directory.file("socket"), "--state-dir", directory.file("state")]
        let outcome = try await run(["doctor"] + options)
        #expect(outcome.ending == .exited(1))
        let line = outcome.output.first { $0.hasPrefix("transport ") }
        #expect(line?.contains("problem") == true && line?.contains(Self.conflict) == true, "\(outcome)")
    }

    @Test func `a service that cannot be queried because of the conflict is not reported as hanging`()
        async throws
    {
        let socket = directory.file("socket")
        let service = try ScriptedServer(unixPath: socket)
        let doctor = try await run(["doctor", "--socket", socket])
        let problems = doctor.output.filter { $0.split(separator: " ").dropFirst().first == "problem" }
        #expect(problems.count == 1 && problems.first?.hasPrefix("transport ") == true, "\(doctor)")
        let status = try await run(["status", "--socket", socket])
        #expect(status.output.last?.hasPrefix("service     cannot be queried: ") == true, "\(status)")
        #expect(status.output.last?.contains(Self.conflict) == true, "\(status)")
        withExtendedLifetime(service) {}
    }
}
