internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// Commands that are process 1 of a PID namespace, as in a container without an init program.
@Suite(.enabled(if: NetworkNamespace.isAvailable), .timeLimit(.minutes(5)))
struct ProcessOneTests {
    private let directory = try! ScratchDirectory()

    /// Starts unshare(1), whose child is the command.
    private func start(_ arguments: [String]) throws -> Subprocess {
        let options = ["--pid", "--fork", "--mount-proc", "--kill-child"]
        return try Subprocess("/usr/bin/unshare", options + [Command.path] + arguments)
    }

    /// Returns the ids and states of the children of a process, such as `Z` for a zombie.
    private static func children(of parent: Int32) throws -> [Int32: String] {
        let processes = try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { Int32($0) }
        let states = processes.compactMap { process -> (Int32, String)? in
            let stat = FileManager.default.contents(atPath: "/proc/\(process)/stat")
            guard let stat else { return nil }
            // The name of the program is in parentheses, and may contain spaces.
            let text = String(decoding: stat, as: UTF8.self)
            let fields = text.split(separator: ")").last?.split(separator: " ")
            guard let fields, fields.count > 1, fields[1] == "\(parent)" else { return nil }
            return (process, String(fields[0]))
        }
        return Dictionary(uniqueKeysWithValues: states)
    }

    /// Sends a signal to the command until it ends, because unshare(1) ignores a signal before it starts the command.
    private func end(_ process: Subprocess, by signal: CInt) async throws -> Subprocess.Ending {
        let sender = Task {
            try await poll {
                for child in try Self.children(of: process.pid).keys { kill(child, signal) }
                return false
            }
        }
        defer { sender.cancel() }
        return try await process.end()
    }

    @Test(
        arguments: [
            ["monitor"], ["host", "127.0.0.1"], ["host", "127.0.0.1", "--format", "json"],
            ["wait", "--interface", "nosuch0"], ["wait", "--for", "carrier", "--interface", "nosuch0"],
        ],
        [SIGINT, SIGTERM]
    )
    func `a signal ends a command`(arguments: [String], signal: CInt) async throws {
        #expect(try await end(try start(arguments), by: signal) == .exited(128 + signal))
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `a signal ends a command that waits for the service`(signal: CInt) async throws {
        let service = try await RunningService(in: directory)
        try await service.pause()
        let send = ["send", "http://127.0.0.1:1/", "--queue", "always", "--wait"]
        for arguments in [["queue", "events"], send] {
            let process = try start(arguments + ["--socket", service.socket])
            #expect(try await end(process, by: signal) == .exited(128 + signal))
        }
    }

    @Test func `the service reaps orphans, and keeps the exit statuses of its own programs`() async throws {
        let path = try directory.writeScript("(sleep 0.1 &)\nexit 3", to: "program")
        // Programs with different arguments run at the same time.
        let hooks = (0..<20).map {
            "[[hook]]\nprogram = \"\(path)\"\narguments = [\"\($0)\"]\ngroup-wait = \"0s\"\n"
        }
        let host = "[[host]]\nname = \"closed\"\ntcp = \"127.0.0.1:1\"\nfall = 1\n"
        let file = try directory.write(Array((host + hooks.joined()).utf8), to: "netwatch.toml")
        let paths = ["--state-dir", directory.file("state"), "--socket", directory.file("socket")]
        let process = try start(["serve", "--config", file] + paths)
        defer { process.signal(SIGKILL) }
        let ending = "failed for host `closed`: exit status 3"
        try await process.errors.wait { $0.count { $0.hasSuffix(ending) } == hooks.count }
        let service = try #require(try Self.children(of: process.pid).keys.first)
        // The orphans are children of the service until it reaps them.
        try await poll { try Self.children(of: service).isEmpty }
        kill(service, SIGTERM)
        #expect(try await process.end() == .exited(0))
    }
}
