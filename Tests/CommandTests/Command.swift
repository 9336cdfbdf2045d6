internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// The `netwatch` executable that was built with these tests, or the one that `NETWATCH` names.
enum Command {
    static let path: String = {
        if let other = ProcessInfo.processInfo.environment["NETWATCH"] { return other }
        let bundle = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        return bundle.deletingLastPathComponent().appending(path: "netwatch").path
    }()

    /// Hides the variables of the tests, such as `NETWATCH_CHECKS`, which would be warnings. An empty variable counts as
    /// unset.
    private static let hiddenVariables = Dictionary(
        uniqueKeysWithValues: ProcessInfo.processInfo.environment.keys.filter { $0.hasPrefix("NETWATCH_") }
            .map { ($0, "") }
    )

    /// Starts the command without waiting for it.
    static func start(
        _ arguments: [String],
        environment: [String: String] = [:],
        input: CInt? = nil,
        in namespace: NetworkNamespace? = nil,
        resolvingBy files: ResolverFiles? = nil
    ) throws -> Subprocess {
        let command = files?.mounted([path] + arguments) ?? [path] + arguments
        let process = try Subprocess(
            command[0],
            Array(command.dropFirst()),
            environment: hiddenVariables.merging(environment) { $1 },
            input: input,
            in: namespace
        )
        if let files { files.keep(until: process) }
        return process
    }

    /// Runs the command until it exits.
    static func run(
        _ arguments: String...,
        environment: [String: String] = [:],
        in namespace: NetworkNamespace? = nil
    ) async throws -> Subprocess.Outcome {
        try await start(arguments, environment: environment, in: namespace).outcome()
    }

    /// Decodes one line of NDJSON.
    static func json(_ line: String) throws -> [String: Any] {
        try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    }
}

/// A service that a test started, with the path of its control socket.
final class RunningService: Sendable {
    let process: Subprocess
    var socket: String { directory.file("socket") }
    var stateDirectory: String { directory.file("state") }
    private let directory: ScratchDirectory
    private let namespace: NetworkNamespace?

    init(
        in directory: ScratchDirectory,
        namespace: NetworkNamespace? = nil,
        resolvingBy files: ResolverFiles? = nil,
        environment: [String: String] = [:],
        options: [String] = []
    ) async throws {
        self.directory = directory
        self.namespace = namespace
        process = try Command.start(
            ["serve", "--state-dir", directory.file("state"), "--socket", directory.file("socket")] + options,
            environment: environment,
            in: namespace,
            resolvingBy: files
        )
        try await process.errors.wait { $0.contains { $0.hasSuffix("ready") } }
    }

    deinit {
        process.signal(9)
    }

    func run(_ arguments: String...) async throws -> Subprocess.Outcome {
        try await run(arguments)
    }

    /// - Parameter input: The path of a file to use as standard input.
    func run(_ arguments: [String], input: String? = nil) async throws -> Subprocess.Outcome {
        let descriptor = input.map { open($0, O_RDONLY | O_CLOEXEC) }
        defer { if let descriptor { close(descriptor) } }
        return try await Command.start(
            arguments + ["--socket", socket],
            input: descriptor,
            in: namespace
        ).outcome()
    }

    /// Pauses the queue, which then accepts requests but sends none.
    func pause() async throws {
        #expect(try await run("queue", "pause").ending == .exited(0))
    }

    /// Enqueues a request and returns its id.
    @discardableResult
    func keep(_ arguments: String...) async throws -> String {
        let sent = try await run(["send", "--queue", "always"] + arguments)
        #expect(sent.ending == .exited(0), "\(sent.errors)")
        return try #require(sent.output.first)
    }

    /// Stops the service with SIGTERM.
    func stop() async throws {
        process.signal(SIGTERM)
        #expect(try await process.end() == .exited(0))
    }

    /// Returns the control API's response to a curl(1) call.
    ///
    /// - Parameter arguments: The path with its query, followed by further curl arguments.
    func curl(_ arguments: String) async throws -> String {
        let parts = arguments.split(separator: " ", maxSplits: 1)
        let command =
            "curl -sS --unix-socket \(socket) 'http://netwatch\(parts[0])' \(parts.dropFirst().joined())"
        let outcome = try await Subprocess("/bin/sh", ["-c", command]).outcome()
        return (outcome.output + outcome.errors).joined(separator: "\n")
    }

    /// Returns the entries of the queue in list order.
    func queue() async throws -> [[String: Any]] {
        try await run("queue", "list", "--format", "json").output.map(Command.json)
    }

    /// Returns the number of requests in each state.
    func counts() async throws -> [String: Int] {
        let stats = try await Command.json(curl("/v1/queue/stats"))
        return try #require(stats["counts"] as? [String: Int], "\(stats)")
    }

    /// Returns the members that `queue show` prints for a request.
    /// The options in the details of a request.
    func options(of id: String) async throws -> [String: Any] {
        try #require(try await details(of: id)["options"] as? [String: Any])
    }

    func details(of id: String) async throws -> [String: Any] {
        let shown = try await run("queue", "show", id, "--format", "json")
        return try Command.json(try #require(shown.output.first))
    }

    /// Returns the entry of a request, without its attempts and its response.
    func request(_ id: String) async throws -> [String: Any] {
        try #require(try await details(of: id)["request"] as? [String: Any])
    }

    /// Waits until the service has logged a line that contains `words`.
    func hasLogged(_ words: String, timeout: Duration = .seconds(50)) async throws {
        try await process.errors.wait(timeout: timeout) { $0.contains { $0.contains(words) } }
    }

    /// Starts `netwatch queue events`, whose output has a line for each event. No later change of the queue is missed.
    func events(_ arguments: String...) async throws -> Subprocess {
        let process = try Command.start(["queue", "events", "--socket", socket] + arguments)
        try await process.errors.wait { $0.contains("waiting for events") }
        return process
    }

    /// An environment in which failures are retried, and refusals are confirmed, after some milliseconds.
    static let quickRetries = ["NETWATCH_QUEUE_BACKOFF_BASE": "\"20ms\""]

    /// The maximum time between two events of the queue for which a test waits. A retry may be minutes later.
    static let longestSilence = Duration.seconds(240)

    /// Waits until a condition holds. Checks it immediately, and again after each event of the queue.
    func until(_ isSatisfied: () async throws -> Bool) async throws {
        let events = try await events()
        defer { events.signal(SIGKILL) }
        try await events.output.until(timeout: Self.longestSilence, isSatisfied)
    }

    /// Waits until the entry of a request satisfies a condition, and returns it.
    @discardableResult
    func request(_ id: String, until isWanted: ([String: Any]) -> Bool) async throws -> [String: Any] {
        var entry: [String: Any] = [:]
        try await until {
            entry = try await request(id)
            return isWanted(entry)
        }
        return entry
    }

    /// Waits until every request in the queue is final, and returns their states in list order.
    func finalStates() async throws -> [String] {
        var states: [String] = []
        for id in try await queue().compactMap({ $0["id"] as? String }) {
            states.append(try #require(try await end(of: id)["state"] as? String))
        }
        return states
    }

    /// Waits up to four minutes until a request is final, and returns its entry.
    func end(of id: String) async throws -> [String: Any] {
        let details = try await Command.json(curl("/v1/requests/\(id)?wait=240"))
        return try #require(details["request"] as? [String: Any], "\(details)")
    }

    /// Kills the service with SIGKILL, so that it cannot clean up.
    func kill() async throws {
        process.signal(9)
        #expect(try await process.end() == .signalled(9))
    }
}

extension RawClient {
    /// Enqueues a request and returns the response of the control API.
    ///
    /// - Parameter body: The JSON object that describes the request.
    func enqueue(_ body: String) throws -> RawResponse {
        try request(
            """
            POST /v1/requests HTTP/1.1\r
            Host: netwatch\r
            Content-Type: application/json\r
            Content-Length: \(body.utf8.count)\r
            \r
            \(body)
            """
        )
    }
}
