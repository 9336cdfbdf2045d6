internal import ClientTestProcess
internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore

/// Processes that exit, fork, run out of descriptors, block threads, are killed or have proxy variables while they use
/// the library.
@Suite(.timeLimit(.minutes(5))) struct ProcessTests {
    private func run(
        _ url: String,
        _ action: ProcessOptions.Action,
        environment: [String: String] = [:],
        mayCrash: Bool = false
    ) async throws -> Subprocess.Outcome {
        let options = ClientProcessOptions.process(ProcessOptions(url: url, action: action))
        return try await Subprocess(
            ClientTestProcess.path,
            [try options.argument],
            environment: environment,
            mayCrash: mayCrash
        ).outcome()
    }

    @Test func `a process that calls exit during TLS handshakes ends normally`() async throws {
        let url = try await TLSServer.shared().url("127.0.0.1")
        for _ in 0..<8 {
            let outcome = try await run(url, .exit(cleansUp: false))
            #expect(outcome.ending == .exited(0), "\(outcome)")
        }
    }

    @Test func `the check detects a crash if OpenSSL frees its memory at exit`() async throws {
        let url = try await TLSServer.shared().url("127.0.0.1")
        var crashes = 0
        for _ in 0..<60 where crashes == 0 {
            let outcome = try await run(url, .exit(cleansUp: true), mayCrash: true)
            if case .signalled = outcome.ending { crashes += 1 }
        }
        #expect(crashes > 0)
    }

    /// The destructors of libnl-route-3 follow the handlers of atexit(3).
    @Test func `exit waits for a running parser of libnl, and no other one starts`() async throws {
        let outcome = try await run("http://127.0.0.1", .exitWhileParsing)
        #expect(outcome.ending == .exited(0))
        #expect(outcome.output == ["parsed", "exiting", "refused"], "\(outcome)")
    }

    @Test func `operations fail without free descriptors, and succeed once there are some`()
        async throws
    {
        let server = try ScriptedServer { _ in .respond("ok") }
        let outcome = try await run(server.url, .startWithoutDescriptors)
        #expect(outcome.ending == .exited(0))
        try #require(outcome.output.count == 5, "\(outcome)")
        #expect(outcome.output[0] == "monitor \(EMFILE)")
        #expect(outcome.output[1].hasPrefix("without ") && outcome.output[1].contains("errno \(EMFILE)"))
        #expect(outcome.output[2...] == ["with status 200", "monitor 0", "done"])
    }

    // The calls of the next two tests are in separate processes, because they delay everything else that uses Dispatch.

    /// The calls are more than the threads that Dispatch starts, which are 255. The requests of the calls' own session
    /// wait until a call returns.
    @Test(arguments: ProcessOptions.Hook.allCases)
    func `calls that do not return leave threads to other sessions`(hook: ProcessOptions.Hook) async throws {
        let server = try ScriptedServer { _ in .respond("ok") }
        let maximum = SessionThreads.maximum
        let outcome = try await run(server.url, .block(hook, calls: 300, until: maximum))
        let expected = [
            "other status 200", "same waits", "blocked \(maximum)", "ended 300", "same status 200", "done",
        ]
        #expect(outcome.output == expected, "\(outcome)")
    }

    @Test(arguments: ProcessOptions.Hook.allCases)
    func `a session with a thread left sends requests while calls do not return`(hook: ProcessOptions.Hook)
        async throws
    {
        let server = try ScriptedServer { _ in .respond("ok") }
        let count = SessionThreads.maximum - 1
        let outcome = try await run(server.url, .block(hook, calls: count, until: count))
        let expected = [
            "other status 200", "same status 200", "blocked \(count)", "ended \(count)", "same status 200",
            "done",
        ]
        #expect(outcome.output == expected, "\(outcome)")
    }

    @Test func `the file of a process that was killed during a download is removed by the next download`()
        async throws
    {
        let server = try ScriptedServer { request in
            guard request.target == "/incomplete" else { return .respond("ok") }
            return .send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart", then: .stall(then: .close))
        }
        let directory = try ScratchDirectory()
        let downloads = directory.file("netwatch-downloads-\(geteuid())")
        func files() -> [String] { (try? FileManager.default.contentsOfDirectory(atPath: downloads)) ?? [] }
        let variables = ["TMPDIR": directory.path]
        let options = ProcessOptions(url: server.url + "/incomplete", action: .download)
        let argument = try ClientProcessOptions.process(options).argument
        let process = try Subprocess(ClientTestProcess.path, [argument], environment: variables)
        defer { process.signal(SIGKILL) }
        _ = await server.requests(atLeast: 1)
        process.signal(SIGKILL)
        #expect(try await process.end() == .signalled(SIGKILL))
        #expect(files().count == 1)
        let outcome = try await run(server.url + "/", .download, environment: variables)
        #expect(outcome.output == ["download status 200", "done"], "\(outcome)")
        #expect(files() == [])
    }

    @Test func `proxy variables are not read`() async throws {
        let proxy = try RefusingPort()
        let server = try ScriptedServer { _ in .respond("ok") }
        let proxies = ["http_proxy": proxy.url, "ALL_PROXY": proxy.url]
        let outcome = try await run(server.url, .send(), environment: proxies)
        #expect(outcome.output == ["response status 200", "done"], "\(outcome)")
    }

    @Test func `a request in a child of fork fails immediately, and the parent continues`() async throws {
        let server = try ScriptedServer { _ in .respond("ok") }
        let outcome = try await run(server.url, .fork)
        #expect(outcome.ending == .exited(0))
        try #require(outcome.output.count == 7, "\(outcome)")
        #expect(outcome.output[0] == "parent status 200")
        for line in outcome.output[1...3] {
            #expect(
                line.hasPrefix("child ") && line.contains("use netwatch in a child of fork(2)"),
                "\(line)"
            )
        }
        #expect(outcome.output[4...] == ["child ended with 0", "parent status 200", "done"])
    }
}
