internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// The start of the service with its last good configuration.
@Suite(.timeLimit(.minutes(5))) struct LastGoodCommandTests {
    private let directory = try! ScratchDirectory()
    private var file: String { directory.file("netwatch.toml") }
    private var lastGood: String { directory.file("state/last-good.toml") }

    private func write(_ text: String) throws { try directory.write(Array(text.utf8), to: "netwatch.toml") }

    private func service(_ environment: [String: String] = [:], options: [String]? = nil) async throws
        -> RunningService
    {
        try await RunningService(
            in: directory,
            environment: environment,
            options: options ?? ["--config", file]
        )
    }

    /// Runs the service once with a configuration, which becomes the last good one.
    private func run(_ text: String) async throws {
        try write(text)
        try await service().stop()
    }

    @Test func `a typo does not keep the service from starting, and is reported until a reload`() async throws
    {
        try await run("[queue.limits]\nrequests = 1\nlane-share = 1\n")
        try write("[queue.limits]\nrequsts = 1\n[queue]\nttl = \"2d\"\n")
        let service = try await service()
        let line = try #require(service.process.errors.values.first)
        #expect(
            line.contains(" error netwatch:")
                && line.contains("the service uses its last good configuration of ")
        )
        #expect(
            line.contains(
                "because it cannot use its files: \(file):2:1: [queue.limits]: `requsts` is not a key"
            )
        )
        let ignored = "`queue.ttl`, `queue.limits.requests`, `queue.limits.lane-share`"
        #expect(line.hasSuffix("; other changes that are ignored: \(ignored)"), "\(line)")
        // The limit of the last good configuration applies.
        try await service.keep("http://127.0.0.1:1/")
        let refused = try await service.run("send", "--queue", "always", "http://127.0.0.1:1/")
        #expect(refused.errors.first?.contains("its limit is 1") == true, "\(refused)")
        func reports() async throws -> [Bool] {
            let status = try await service.run("status", "--timeout", "10s").output
            let doctor = try await Command.run("doctor", "--config", file, "--socket", service.socket).output
            return [
                status.contains { $0.hasPrefix("config      the last good one, of ") },
                doctor.contains {
                    $0.hasPrefix("service        problem  the service uses its last good configuration")
                },
                try await service.curl("/metrics").contains("netwatch_configuration_last_load_successful 0"),
                try await service.curl("/").contains("uses its last good configuration, of "),
            ]
        }
        #expect(try await reports() == [true, true, true, true])
        #expect(try await service.curl("/v1/reload -X POST").contains("configuration_refused"))
        #expect(try await reports() == [true, true, true, true])
        try write("[queue.limits]\nrequests = 2\nlane-share = 1\n")
        #expect(try await service.curl("/v1/reload -X POST").hasPrefix(#"{"hosts":0"#))
        #expect(try await reports() == [false, false, false, false])
        try await service.keep("http://127.0.0.1:1/")
        // The reload has replaced the last good configuration, which only its owner can read.
        let kept = try String(contentsOfFile: lastGood, encoding: .utf8)
        #expect(kept.contains("requests = 2\n") && kept.contains(file))
        #expect(try shell("stat -c %a \(lastGood)") == "600\n")
    }

    @Test func `a missing file, and one that cannot be read, are replaced like faults`() async throws {
        try await run("[queue]\ninflight = 3\n")
        let cause = "because it cannot use its files: \(file): the file cannot be read: "
        try #require(unlink(file) == 0)
        let missing = try await service()
        try await missing.hasLogged("\(cause)No such file or directory")
        try await missing.stop()
        try #require(mkdir(file, 0o700) == 0)
        let unreadable = try await service()
        try await unreadable.hasLogged("\(cause)Is a directory")
        try await unreadable.stop()
    }

    @Test func `a default file that is missing since the last start is a fault until it exists again`()
        async throws
    {
        let environment = ["CONFIGURATION_DIRECTORY": directory.path]
        try write("[queue]\ninflight = 3\n")
        try await service(environment, options: []).stop()
        try #require(unlink(file) == 0)
        let service = try await service(environment, options: [])
        try await service.hasLogged("\(file): the file is missing; an empty file selects the defaults")
        #expect(try await service.curl("/v1/reload -X POST").contains("configuration_refused"))
        try write("")
        #expect(try await service.curl("/v1/reload -X POST").hasPrefix(#"{"hosts":0"#))
        try await service.stop()
        let next = try await self.service(environment, options: [])
        #expect(!next.process.errors.values.contains { $0.contains("last good") })
    }

    @Test func `a damaged last good configuration is named after the faults, and kept aside`() async throws {
        try await run("[queue]\ninflight = 3\n")
        try shell("sed -i 's/inflight = 3/inflight = 4/' \(lastGood)")
        let damaged = try String(contentsOfFile: lastGood, encoding: .utf8)
        try write("[queue]\ninflght = 3\n")
        let serve = ["serve", "--config", file, "--state-dir", directory.file("state")]
        let refused = try await Command.start(serve + ["--socket", directory.file("socket")]).outcome()
        #expect(refused.ending == .exited(78) && refused.errors.count == 4, "\(refused)")
        #expect(refused.errors.first?.hasPrefix("error: \(file):2:1: ") == true)
        #expect(refused.errors[1].hasPrefix("error: \(lastGood): the last good configuration is damaged"))
        #expect(try String(contentsOfFile: lastGood, encoding: .utf8) == damaged)
        try write("[queue]\ninflight = 5\n")
        let service = try await service()
        try await service.hasLogged("the file was moved to `\(lastGood).damaged`")
        #expect(try String(contentsOfFile: "\(lastGood).damaged", encoding: .utf8) == damaged)
        #expect(try String(contentsOfFile: lastGood, encoding: .utf8).contains("inflight = 5\n"))
    }

    @Test func `a configuration that cannot be stored is a warning`() async throws {
        try write("[queue]\n")
        for folder in ["state", "state/last-good.toml.new"] {
            try #require(mkdir(directory.file(folder), 0o700) == 0)
        }
        try #require(close(open(directory.file("state/queue.lock"), O_CREAT | O_CLOEXEC, 0o600)) == 0)
        let service = try await service()
        try await service.hasLogged("the configuration could not be stored as the last good one: ")
        let doctor = try await Command.run("doctor", "--config", file, "--socket", service.socket).output
        #expect(
            doctor.contains {
                $0.hasPrefix("service        warning  the service could not store its configuration")
            },
            "\(doctor)"
        )
    }

    @Test(.enabled(if: access("/usr/bin/script", X_OK) == 0, "script(1) is not installed"))
    func `a person at a terminal gets the faults, and no service`() async throws {
        try await run("[queue]\ninflight = 3\n")
        try write("[queue]\ninflght = 3\n")
        let paths = "--state-dir \(directory.file("state")) --socket \(directory.file("socket"))"
        let command = "\(Command.path) serve --config \(file) \(paths); echo status $?"
        let output = try shell("env -u NOTIFY_SOCKET script -qec '\(command)' /dev/null </dev/null")
        #expect(output.contains("status 78") && output.contains("`inflght` is not a key"), "\(output)")
    }
}
